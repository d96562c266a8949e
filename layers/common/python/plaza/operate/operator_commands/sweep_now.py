"""Sweep the outboxes now, for an operator who does not wait for the next minute."""

from __future__ import annotations

from typing import NamedTuple

from plaza.commerce.checkins.sweep import sweep_checkins
from plaza.core.reactions.sweep import sweep_outbox
from plaza.infra.runtime.observability import record

MAX_REACTIONS_S, MAX_CHECKINS_S = 4.0, 2.0  # the API answers within 10 s


class Swept(NamedTuple):
    """How many entries of each kind were sent again."""

    reactions: int
    checkins: int


def sweep_now(everything: bool, operator_id: str) -> Swept:
    """Send entries of outboxes again, for about 6 s; return how many. ``everything``: also those
    that were swept a moment ago, and while the backlog is long. Raises RedisDown, QueueDown."""
    swept = Swept(
        sweep_outbox(everything=everything, max_s=MAX_REACTIONS_S),
        sweep_checkins(everything=everything, max_s=MAX_CHECKINS_S),
    )
    record("sweep_requested", operator_id=operator_id, everything=everything, **swept._asdict())
    return swept
