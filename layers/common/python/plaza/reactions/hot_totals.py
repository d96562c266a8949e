"""Totals of hot targets, cached in this process for 1 s for anonymous callers.

A caller with a session reads Redis in any case, for the caller's own state.
"""

from __future__ import annotations

from plaza.infra.process import HotCache
from plaza.reactions.model import Kind, Target

hot_totals: HotCache[tuple[str, Target], int] = HotCache(max_entries=1_000)


def drop_total(kind: Kind, target: Target) -> None:
    """Drop the cached total after a change by this process."""
    hot_totals.drop((kind.name, target))
