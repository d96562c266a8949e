"""Totals of hot targets, relieved for anonymous callers (``infra.redis.hot_reads``).

A caller with a session reads the master in any case, for the caller's own state.
"""

from __future__ import annotations

from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import Target
from plaza.core.reactions.redis_keys import keys_of
from plaza.infra.redis.hot_reads import HotReads

# A total and its order token.
hot_totals: HotReads[tuple[str, Target], tuple[int, str | None]] = HotReads(
    lambda key: keys_of(*key).meta
)


def drop_total(kind: Kind, target: Target) -> None:
    """Drop the cached total after a change by this process."""
    hot_totals.drop((kind.name, target))
