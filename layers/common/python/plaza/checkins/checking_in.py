"""Checking in, and looking at it: Redis decides and answers, MySQL is the record."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date

from plaza.checkins import mysql_checkins, redis_checkins
from plaza.checkins.checkins import (
    FIRST_MONTH,
    CheckedIn,
    Month,
    Undecided,
    month_of,
    next_month,
    streak_on,
)
from plaza.checkins.queues import CHECKINS
from plaza.checkins.redis_checkins import Seen
from plaza.infra import clock
from plaza.infra.observability import cause, present_request, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.users import cards

_MOST_TRIES = 5

# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_instead_of_redis = TokenBucket(rate_per_s=20, burst=40)


def check_in(user_id: int) -> Month:
    """The user is here today; once a day counts. What the month looks like with it.

    An exact answer has two copies: Redis, and the queue or MySQL. Two round trips to Redis when all
    is warm. Raises Undecided, MysqlDown, QueueDown: try again.
    """
    now_us = clock.now_us()
    today = cards.read_zone(user_id).day_at(now_us / 1e6)
    try:
        today, seen, accepted_us = _set_day(user_id, today, now_us)
    except RedisDown as error:
        CHECKINS.send(CheckedIn(user_id, today, now_us))
        record("intent_taken", {"intents": 1}, **cause(error))
        return Month(today, month_of(today), None, None, exact=False)
    if accepted_us:
        _copy(CheckedIn(user_id, today, accepted_us))
    return Month(today, month_of(today), seen.days, seen.streak, exact=True)


def read_month(user_id: int, first: date) -> Month:
    """The check-ins of a user in the month that begins on ``first``, and their streak by now.

    Two round trips to Redis when all is warm. Raises Undecided, MysqlDown, RedisDown.
    """
    today = cards.read_zone(user_id).day_at(clock.now_s())
    there_are_some = FIRST_MONTH <= first <= next_month(today)
    asked = first if there_are_some else month_of(today)  # no keys for months that nobody has
    try:
        seen, exact = _see(user_id, asked), True
    except RedisDown:
        if not _instead_of_redis.take():
            raise
        seen, exact = _see_in_mysql(user_id, asked), False
    today = max(today, seen.last or today)
    streak = streak_on(today, seen.last, seen.streak)
    return Month(today, first, seen.days if there_are_some else [], streak, exact)


def _set_day(user_id: int, day: date, now_us: int) -> tuple[date, Seen, int]:
    """(The day that is set, what Redis has then, when it was accepted: 0 if MySQL has it)."""
    for _ in range(_MOST_TRIES):
        code, seen, accepted_us = redis_checkins.check_in(user_id, day, now_us)
        if seen is None:
            _hydrate(user_id, month_of(day))
        elif code == "LATER" and seen.last is not None:
            day = seen.last  # which day it was for them, by a zone that this process knows not yet
        else:
            return day, seen, accepted_us
    raise Undecided("Your check-ins changed each time they were read")


def _copy(fact: CheckedIn) -> None:
    """Send a fact that is in the outbox, or save it when the queue is away.

    Redis alone may lose it with its master. A caller who gets an error instead of an answer may
    repeat the request: what is still in the outbox is copied then. Raises MysqlDown.
    """
    try:
        CHECKINS.send(fact)
    except QueueDown as error:
        mysql_checkins.save([replace(fact, request_id=present_request())])
        record("checkin_saved_directly", {"checkins_saved_directly": 1}, **cause(error))
        with suppress(RedisDown):  # then the sweeper sends it
            redis_checkins.settle_all([fact])


def _see(user_id: int, first: date) -> Seen:
    for _ in range(_MOST_TRIES):
        if (seen := redis_checkins.read(user_id, first)) is not None:
            return seen
        _hydrate(user_id, first)
    raise Undecided("Your check-ins changed each time they were read")


def _see_in_mysql(user_id: int, first: date) -> Seen:
    recorded = mysql_checkins.read(user_id, first)
    days = [day.day for day in recorded.days]
    if not recorded.runs:
        return Seen(None, 0, days)
    newest = recorded.runs[0]
    return Seen(newest.last, (newest.last - newest.first).days + 1, days)


def _hydrate(user_id: int, first: date) -> None:
    """Bring a user's streak and a month back; whoever asks then finds them, or asks again."""
    lease = redis_checkins.take_lease(user_id)
    redis_checkins.hydrate(user_id, lease, first, mysql_checkins.read(user_id, first))
