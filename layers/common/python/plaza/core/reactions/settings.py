"""The settings of reactions."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.settings import declare


class ReactionSettings(NamedTuple):
    """``recent_cap``: actors of a target that Redis keeps by name; ``outbox_limit``: entries of an
    outbox, above which reactions are refused."""

    recent_cap: int = 1_000
    outbox_limit: int = 1_000_000


reaction_settings = declare(ReactionSettings)
