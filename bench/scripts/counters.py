"""Holds of a user who follows as many users as allowed."""

import time

from bench.harness import Harness
from bench.scripts.cases import Case
from plaza.core.counters import redis_store
from plaza.core.counters.model import Hold, UserCounter
from plaza.core.counters.redis_store import MAX_HOLDS_PER_CALL
from plaza.infra.redis import redis
from plaza.people.follows import FOLLOW_LIMIT

_FIRST = 10**18
_USERS = 10  # one for each run of a case
_EXPIRED_US = 1


def _user(run: int) -> int:
    return _FIRST + run


def _members(count: int) -> list[str]:
    return [f"user:{_FIRST + i}" for i in range(count)]


def _hold_all(at_us: int) -> None:
    for run in range(_USERS):
        holds = [part for member in _members(FOLLOW_LIMIT - 1) for part in (at_us, member)]
        redis.execute("ZADD", redis_store._holds_key(_user(run)), *holds)
    users = [_user(run) for run in range(_USERS)]
    announced = redis_store.announce_reads(users)
    redis_store.store_read_users(dict.fromkeys(users, UserCounter(version=1)), announced)


def _hold(run: int) -> None:
    redis_store.hold(_user(run), "following_total", FOLLOW_LIMIT, f"user:{_FIRST - 1}")


def _take_back_earlier(harness: Harness) -> None:
    """Hold a member again and again, and release each hold but the last."""
    for run in range(_USERS):
        earlier = [part for at in range(1, 1_000) for part in (f"user:7@{at}", at - 1)]
        redis.execute("HSET", redis_store._counted_key(_user(run)), *earlier)
        redis.execute("ZADD", redis_store._holds_key(_user(run)), 1_000, "user:7")


CASES = [
    Case(
        "5,000 holds",
        redis_store.HOLD,
        lambda harness: _hold_all(time.time_ns() // 1000),
        _hold,
    ),
    Case(
        "5,000 holds that have expired",
        redis_store.HOLD,
        lambda harness: _hold_all(_EXPIRED_US),
        _hold,
    ),
    Case(
        "a hold behind 1,000 others",
        redis_store.CANCEL_HOLD,
        _take_back_earlier,
        lambda run: redis_store.cancel_hold(_user(run), "user:7", Hold(1_000, 999)),
    ),
    Case(
        "250 holds that were made again",
        redis_store.RELEASE,
        lambda harness: _hold_all(time.time_ns() // 1000),
        lambda run: redis_store.release(
            (_user(run), member, 1) for member in _members(MAX_HOLDS_PER_CALL)
        ),
    ),
]
