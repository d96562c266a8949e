"""Totals of hot targets, from this process's memory for a second, for those who are nobody.

Whoever has a session is always told by Redis: it has to be asked for what they did themselves.
"""

from __future__ import annotations

from plaza.infra.process import HotCache
from plaza.reactions.model import Kind, Target

hot_totals: HotCache[tuple[str, Target], int] = HotCache(max_entries=1_000)


def drop_total(kind: Kind, target: Target) -> None:
    """It has changed, as far as this process knows."""
    hot_totals.drop((kind.name, target))
