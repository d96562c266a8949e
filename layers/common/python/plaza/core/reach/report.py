"""The report of visitors for operators."""

from __future__ import annotations

from datetime import timedelta

from plaza.core.reach import redis_store
from plaza.core.reach.model import Reach, Visitors, monday_of
from plaza.infra.runtime import clock


def read_reach(count: int) -> Reach:
    """Return the visitors of the last ``count`` days in UTC, today included, and of all weeks that
    these days are in. One round trip. Raises RedisDown."""
    today = clock.today()
    days = [today - timedelta(days=n) for n in reversed(range(count))]
    mondays = sorted({monday_of(day) for day in days})
    weeks = [[monday + timedelta(days=n) for n in range(7)] for monday in mondays]
    total, *counts = redis_store.count_visitors([days, *([day] for day in days), *weeks])
    return Reach(
        total,
        [Visitors(*counted) for counted in zip(days, counts[:count], strict=True)],
        [Visitors(*counted) for counted in zip(mondays, counts[count:], strict=True)],
    )
