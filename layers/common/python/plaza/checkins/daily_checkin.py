"""Checking in, and looking at it: Redis decides and answers, MySQL is the record."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date

from plaza.checkins import mysql_store, redis_store
from plaza.checkins.model import (
    FIRST_MONTH,
    CheckInEvent,
    CheckInsKeepChanging,
    Month,
    current_streak,
    month_of,
    next_month,
)
from plaza.checkins.queues import CHECKINS
from plaza.checkins.redis_store import CheckInState
from plaza.infra import clock
from plaza.infra.observability import current_request_id, error_fields, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.users import cards

_MAX_ATTEMPTS = 5

# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)


def check_in(user_id: int) -> Month:
    """The user is here today; once a day counts. What the month looks like with it.

    An exact answer has two copies: Redis, and the queue or MySQL. Two round trips to Redis when all
    is warm. Raises CheckInsKeepChanging, MysqlDown, QueueDown: try again.
    """
    now_us = clock.now_us()
    today = cards.read_zone(user_id).day_at(now_us / 1e6)
    try:
        today, state, accepted_us = _set_day(user_id, today, now_us)
    except RedisDown as error:
        CHECKINS.send(CheckInEvent(user_id, today, now_us))
        record("provisional_checkin_accepted", {"provisional_checkins": 1}, **error_fields(error))
        return Month(today, month_of(today), None, None, exact=False)
    if accepted_us:
        _publish_or_save(CheckInEvent(user_id, today, accepted_us))
    return Month(today, month_of(today), state.days, state.streak, exact=True)


def read_month(user_id: int, first: date) -> Month:
    """The check-ins of a user in the month that begins on ``first``, and their streak by now.

    Two round trips to Redis when all is warm. Raises CheckInsKeepChanging, MysqlDown, RedisDown.
    """
    today = cards.read_zone(user_id).day_at(clock.now_s())
    there_are_some = FIRST_MONTH <= first <= next_month(today)
    month = first if there_are_some else month_of(today)  # no keys for months that nobody has
    try:
        state, exact = _read_from_redis(user_id, month), True
    except RedisDown:
        if not _fallback_budget.take():
            raise
        state, exact = _read_from_mysql(user_id, month), False
    today = max(today, state.last or today)
    streak = current_streak(today, state.last, state.streak)
    return Month(today, first, state.days if there_are_some else [], streak, exact)


def _set_day(user_id: int, day: date, now_us: int) -> tuple[date, CheckInState, int]:
    """(The day that is set, what Redis has then, when it was accepted: 0 if MySQL has it)."""
    for _ in range(_MAX_ATTEMPTS):
        code, state, accepted_us = redis_store.check_in(user_id, day, now_us)
        if state is None:
            _hydrate(user_id, month_of(day))
        elif code == "DAY_PASSED" and state.last is not None:
            day = state.last  # which day it was for them, by a zone that this process knows not yet
        else:
            return day, state, accepted_us
    raise CheckInsKeepChanging("Your check-ins changed each time they were read")


def _publish_or_save(event: CheckInEvent) -> None:
    """Send an event that is in the outbox, or save it when the queue is away.

    Redis alone may lose it with its master. A caller who gets an error instead of an answer may
    repeat the request: what is still in the outbox is copied then. Raises MysqlDown.
    """
    try:
        CHECKINS.send(event)
    except QueueDown as error:
        mysql_store.insert([replace(event, request_id=current_request_id())])
        record("checkin_saved_directly", {"checkins_saved_directly": 1}, **error_fields(error))
        with suppress(RedisDown):  # then the sweeper sends it
            redis_store.acknowledge_all([event])


def _read_from_redis(user_id: int, first: date) -> CheckInState:
    for _ in range(_MAX_ATTEMPTS):
        if (state := redis_store.read(user_id, first)) is not None:
            return state
        _hydrate(user_id, first)
    raise CheckInsKeepChanging("Your check-ins changed each time they were read")


def _read_from_mysql(user_id: int, first: date) -> CheckInState:
    stored = mysql_store.read(user_id, first)
    days = [day.day for day in stored.days]
    if not stored.runs:
        return CheckInState(None, 0, days)
    newest = stored.runs[0]
    return CheckInState(newest.last, (newest.last - newest.first).days + 1, days)


def _hydrate(user_id: int, first: date) -> None:
    """Bring a user's streak and a month back; whoever asks then finds them, or asks again."""
    lease = redis_store.acquire_lease(user_id)
    redis_store.hydrate(user_id, lease, first, mysql_store.read(user_id, first))
