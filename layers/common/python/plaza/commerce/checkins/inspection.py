"""The check-ins of users in Redis and in MySQL, for the reconciliation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import date

from plaza.commerce.checkins import mysql_store, redis_store
from plaza.commerce.checkins.model import FIRST_MONTH, next_month
from plaza.commerce.checkins.redis_store import CachedCheckIns, drop, owner_of_key
from plaza.infra.derived.comparisons import DerivedList
from plaza.infra.derived.list_state import ListState, compare_entries


def compare(user_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare the months and streaks of users in Redis with MySQL and the outbox; omit users whom
    Redis has not hydrated. Two round trips, one statement. Raises RedisDown, MysqlDown."""
    cached = redis_store.read_cached(user_ids)
    begins = {user_id: _first_needed(state) for user_id, state in cached.items()}
    stored = mysql_store.read_days_from(begins)
    return {
        user_id: compare_entries(
            dict(_list_entries(state.days, state.last, state.streak)),
            dict(_expect(state, stored[user_id] | state.outbox)),
        )
        for user_id, state in cached.items()
    }


def _first_needed(state: CachedCheckIns) -> date:
    """Return the first day on which the months, or the day before the streak, depend."""
    if state.last is None:
        return FIRST_MONTH
    before = date.fromordinal(max(1, state.last.toordinal() - max(0, state.streak)))
    return min([before, *state.months])


def _expect(state: CachedCheckIns, days: Set[date]) -> Iterator[tuple[str, int]]:
    """Yield what Redis must have of ``days``, which are all from ``_first_needed`` on."""
    last, streak = max(days, default=None), 0
    while last and date.fromordinal(max(1, last.toordinal() - streak)) in days:
        streak += 1
    in_months = [
        day for day in days if any(month <= day < next_month(month) for month in state.months)
    ]
    yield from _list_entries(in_months, last, streak)


def _list_entries(
    days: Sequence[date], last: date | None, streak: int
) -> Iterator[tuple[str, int]]:
    yield "last", last.toordinal() if last else 0
    yield "streak", streak
    for day in days:
        yield str(day), 1


CHECK_INS = DerivedList(name="check-ins", find_owner=owner_of_key, compare=compare, repair=drop)
