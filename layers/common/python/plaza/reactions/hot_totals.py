"""Totals of hot targets, from this process's memory for a second, for those who are nobody.

Whoever has a session is always told by Redis: it has to be asked for what they did themselves.
"""

from __future__ import annotations

from plaza.infra.hot_values import HotValues
from plaza.reactions.reactions import Kind, Target

hot_totals: HotValues[tuple[str, Target], int] = HotValues()


def forget_hot_totals() -> None:
    """Ask Redis for all of them again."""
    hot_totals.clear()


def drop_total(kind: Kind, target: Target) -> None:
    """It has changed, as far as this process knows."""
    hot_totals.drop((kind.name, target))
