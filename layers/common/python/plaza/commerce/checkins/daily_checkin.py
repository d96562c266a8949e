"""Check in and read check-ins: Redis decides and serves reads, MySQL is the record."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta

from plaza.commerce.checkins import model, mysql_store, redis_store
from plaza.commerce.checkins.model import (
    FIRST_MONTH,
    CheckInEvent,
    CheckInsKeepChanging,
    Month,
    current_streak,
    month_of,
    next_month,
)
from plaza.commerce.checkins.queues import CHECKINS
from plaza.commerce.checkins.redis_store import CheckInState
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import current_request_id, error_fields, record
from plaza.people.users import Zone, cards

_MAX_ATTEMPTS = 5

# Per process: a thousand processes must not overload MySQL while Redis is down.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)


def check_in(user_id: int) -> Month:
    """Check a user in for today, at most once a day; return the month with it.

    An exact check-in has two copies: in Redis, and on the queue or in MySQL. Two round trips to
    Redis if the user is hydrated, and three more on the day after a move to the east, for the days
    that it took. Raises CheckInsKeepChanging, MysqlDown, QueueDown: try again.
    """
    now_us = clock.now_us()
    zone = cards.read_zone(user_id)
    today = zone.day_at(now_us / 1e6)
    try:
        _set_excused_days(user_id, zone, today, now_us)
        today, state, accepted_us = _set_day(user_id, today, now_us)
    except RedisDown as error:
        CHECKINS.send(CheckInEvent(user_id, today, now_us))
        record("provisional_checkin_accepted", {"provisional_checkins": 1}, **error_fields(error))
        return Month(today, month_of(today), None, None, exact=False)
    if accepted_us:
        _publish_or_save(CheckInEvent(user_id, today, accepted_us))
    return Month(today, month_of(today), state.days, state.streak, exact=True)


def read_month(user_id: int, first: date | None = None) -> Month:
    """Return a user's check-ins in the month that begins on ``first``, and the current streak.

    None is the month of today. Two round trips if the user is hydrated. Raises
    CheckInsKeepChanging, MysqlDown, RedisDown.
    """
    zone = cards.read_zone(user_id)
    today = zone.day_at(clock.now_s())
    month = _read_month(user_id, zone, today, first or month_of(today))
    if first is None and month.first != month_of(month.today):
        # The last check-in was in a newer time zone, where the next month has begun.
        return _read_month(user_id, zone, month.today, month_of(month.today))
    return month


def _read_month(user_id: int, zone: Zone, today: date, first: date) -> Month:
    may_have_days = FIRST_MONTH <= first <= next_month(today)
    month = first if may_have_days else month_of(today)  # other months get no keys
    try:
        state, exact = _read_from_redis(user_id, month), True
    except RedisDown:
        if not _fallback_budget.take():
            raise
        state, exact = _read_from_mysql(user_id, month), False
    today = max(today, state.last or today)
    streak = current_streak(today, state.last, state.streak, zone)
    return Month(today, first, state.days if may_have_days else [], streak, exact)


def _set_day(user_id: int, day: date, now_us: int) -> tuple[date, CheckInState, int]:
    """Return (the day, the state with it, when it was accepted in µs: 0 if MySQL has it)."""
    for _ in range(_MAX_ATTEMPTS):
        code, state, accepted_us = redis_store.check_in(user_id, day, now_us)
        if state is None:
            _hydrate(user_id, month_of(day))
        elif code == "DAY_PASSED" and state.last is not None:
            day = state.last  # the day in a newer time zone, which this process has not read
        else:
            return day, state, accepted_us
    raise CheckInsKeepChanging("Your check-ins changed on every attempt; retry after 2 s.")


def _set_excused_days(user_id: int, zone: Zone, today: date, now_us: int) -> None:
    """Check a user in on the days between the last check-in and today, if a move to the east took
    them all. So the streak is consecutive days wherever it is computed, also by another version."""
    if zone.excused is None or zone.excused[1] != today - timedelta(days=1):
        return
    last = _read_from_redis(user_id, month_of(today)).last
    for day in zone.excused_after(last, today):
        _, _, accepted_us = _set_day(user_id, day, model.accepted_us(day, now_us))
        if accepted_us:
            _publish_or_save(CheckInEvent(user_id, day, accepted_us))


def _publish_or_save(event: CheckInEvent) -> None:
    """Send an event of the outbox, or store it in MySQL if SQS refuses: Redis may lose its copy.

    Raises MysqlDown: a repeat of the request sends the outbox entry again.
    """
    try:
        CHECKINS.send(event)
    except QueueDown as error:
        mysql_store.insert([replace(event, request_id=current_request_id())])
        record("checkin_saved_directly", {"checkins_saved_directly": 1}, **error_fields(error))
        with suppress(RedisDown):  # the sweeper then sends it
            redis_store.acknowledge_all([event])


def _read_from_redis(user_id: int, first: date) -> CheckInState:
    for _ in range(_MAX_ATTEMPTS):
        if (state := redis_store.read(user_id, first)) is not None:
            return state
        _hydrate(user_id, first)
    raise CheckInsKeepChanging("Your check-ins changed on every attempt; retry after 2 s.")


def _read_from_mysql(user_id: int, first: date) -> CheckInState:
    stored = mysql_store.read(user_id, first)
    days = [day.day for day in stored.days]
    if not stored.ranges:
        return CheckInState(None, 0, days)
    newest = stored.ranges[0]
    return CheckInState(newest.last, (newest.last - newest.first).days + 1, days)


def _hydrate(user_id: int, first: date) -> None:
    """Load a streak and a month into Redis, unless the lease ends: the caller retries."""
    lease = redis_store.acquire_lease(user_id)
    redis_store.hydrate(user_id, lease, first, mysql_store.read(user_id, first))
