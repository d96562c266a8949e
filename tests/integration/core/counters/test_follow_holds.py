"""Holds reserve slots below a user's limit until the total includes them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from plaza.core import counters
from plaza.core.counters import redis_store
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.shards import shard_of
from tests.support.keyspace import redis_us
from tests.support.plaza import World
from tests.support.stores import put_totals

USER = 7
HOLDS = f"{{{shard_of('user:7')}}}:user:7:holds"
SKEW_US = redis_store.MAX_CLOCK_SKEW_US


def hold(member: str, limit: int = 5) -> counters.Hold | None:
    return counters.hold(USER, "following_total", limit, member)


def read_holds() -> dict[str, int]:
    pairs = iter(redis.execute("ZRANGE", HOLDS, 0, -1, "WITHSCORES"))
    return {member: int(float(score)) for member, score in zip(pairs, pairs, strict=True)}


def test_the_total_and_the_holds_stay_within_the_limit(plaza: World) -> None:
    mysql.write("INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 3, 9)")
    assert hold("user:1")
    assert hold("user:2")
    assert hold("user:3") is None
    assert hold("user:2"), "a repeated hold takes no further slot"
    assert set(read_holds()) == {"user:1", "user:2"}


def test_a_hold_is_released_by_a_follow_counted_after_it(plaza: World) -> None:
    held = hold("user:1")
    assert held
    counters.release([(USER, "user:1", held.at_us - SKEW_US - 1), (USER, "user:2", held.at_us)])
    assert read_holds() == {"user:1": held.at_us}, "the released follow was older"
    counters.release([(USER, "user:1", held.at_us)])
    assert read_holds() == {}
    counters.release([])


def test_a_release_tolerates_the_maximum_clock_skew(plaza: World) -> None:
    held = hold("user:1")
    assert held
    counters.release([(USER, "user:1", held.at_us - SKEW_US)])
    assert read_holds() == {}


def test_a_hold_taken_back_restores_the_earlier_hold(plaza: World) -> None:
    first = hold("user:1")
    again = hold("user:1")
    assert first
    assert again
    assert (first.before_us, again.before_us) == (0, first.at_us)
    counters.cancel_hold(USER, "user:1", again)
    assert read_holds() == {"user:1": first.at_us}
    counters.cancel_hold(USER, "user:1", again)
    assert read_holds() == {"user:1": first.at_us}, "a repeat changes nothing"
    counters.cancel_hold(USER, "user:1", first)
    assert read_holds() == {}


@pytest.mark.parametrize("between", [False, True])
def test_a_hold_with_a_lost_reply_is_taken_back_completely(
    plaza: World, monkeypatch: pytest.MonkeyPatch, between: bool
) -> None:
    """The command runs twice, with or without another hold of the same member in between."""
    assert hold("user:9"), "the totals are in Redis"
    others: list[counters.Hold | None] = []
    run = redis.run

    def run_twice(*call: Any) -> Any:
        run(*call)
        monkeypatch.setattr(redis, "run", run)
        if between:
            others.append(hold("user:1"))
        return run(*call)

    monkeypatch.setattr(redis, "run", run_twice)
    held = hold("user:1")
    assert held
    for each in (held, *others):
        assert each
        counters.cancel_hold(USER, "user:1", each)
    assert set(read_holds()) == {"user:9"}


def test_a_repeated_hold_is_not_taken_back_by_the_first(plaza: World) -> None:
    first, again = hold("user:1"), hold("user:1")
    assert first
    assert again
    counters.cancel_hold(USER, "user:1", first)
    assert read_holds() == {"user:1": again.at_us}


def test_a_counted_hold_is_not_restored_when_its_repeat_is_taken_back(
    plaza: World,
) -> None:
    first = hold("user:1")
    assert first
    # beyond the tolerated clock skew
    redis.execute("ZADD", HOLDS, first.at_us - 2 * SKEW_US, "user:1")
    again = hold("user:1")
    assert again
    counters.release([(USER, "user:1", again.before_us)])
    assert read_holds() == {"user:1": again.at_us}
    counters.release([(USER, "user:1", again.before_us - 5)])  # delivered again, late
    counters.cancel_hold(USER, "user:1", again)
    assert read_holds() == {}


@pytest.mark.parametrize("order", [*itertools.permutations(range(1, 4))])
def test_repeats_taken_back_in_any_order_restore_the_first_hold(
    plaza: World, order: tuple[int, ...]
) -> None:
    held = [each for _ in range(4) if (each := hold("user:1"))]
    assert len(held) == 4
    for index in order:
        counters.cancel_hold(USER, "user:1", held[index])
    assert read_holds() == {"user:1": held[0].at_us}
    assert hold("user:2", limit=2)
    assert hold("user:3", limit=2) is None


def test_an_unreleased_hold_expires_after_one_hour(plaza: World) -> None:
    for number in range(1, 5):
        assert hold(f"user:{number}")
    hour_us = redis_store.HOLD_TTL_MS * 1000
    redis.execute("ZADD", HOLDS, redis_us() - hour_us - 1, "user:9")
    assert hold("user:5")
    assert "user:9" not in read_holds()
    assert 0 < redis.execute("PTTL", HOLDS) <= redis_store.HOLD_TTL_MS


def test_totals_read_before_a_commit_do_not_raise_the_limit(plaza: World) -> None:
    """The consumer counted the fifth follow and released its hold; a reader has the old total."""
    mysql.write("INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 4, 9)")
    old = counters.read_users([USER])
    redis.execute("FLUSHALL")
    mysql.write("UPDATE user_counter SET following_total = 5, version = 10")
    counters.refresh_projections([USER])
    put_totals(old)
    assert hold("user:1") is None


def test_a_user_with_holds_and_without_totals_is_updated(plaza: World) -> None:
    """The holds have to be released, although the totals have expired."""

    def find() -> set[int]:
        also = HOLDS.replace("holds", "nothing")
        return redis_store.find_cached_users([USER], lambda _: also)

    assert hold("user:1")
    redis.execute("DEL", redis_store.user_key(USER))
    assert find() == {USER}
    redis.execute("DEL", HOLDS)
    assert find() == set()
