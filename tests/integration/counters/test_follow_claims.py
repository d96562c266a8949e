"""Claims: what a user is limited in is set aside while it is on its way into their totals."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from plaza import counters
from plaza.counters import redis_store
from plaza.infra import mysql, redis
from plaza.infra.shards import shard_of
from tests.support.keyspace import redis_us
from tests.support.plaza import World

ME = 7
CLAIMS = f"{{{shard_of('user:7')}}}:user:7:claims"
SLACK_US = redis_store.MAX_CLOCK_SKEW_US


def claim(member: str, most: int = 5) -> counters.Claim | None:
    return counters.claim(ME, "following_total", most, member)


def held() -> dict[str, int]:
    pairs = iter(redis.execute("ZRANGE", CLAIMS, 0, -1, "WITHSCORES"))
    return {member: int(float(score)) for member, score in zip(pairs, pairs, strict=True)}


def test_what_is_counted_and_what_is_on_its_way_stay_within_the_limit(plaza: World) -> None:
    mysql.write("INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 3, 9)")
    assert claim("user:1")
    assert claim("user:2")
    assert claim("user:3") is None
    assert claim("user:2"), "what is claimed already takes no more room"
    assert set(held()) == {"user:1", "user:2"}


def test_a_claim_is_released_by_what_was_counted_after_it(plaza: World) -> None:
    made = claim("user:1")
    assert made
    counters.release([(ME, "user:1", made.at_us - SLACK_US - 1), (ME, "user:2", made.at_us)])
    assert held() == {"user:1": made.at_us}, "that was an older follow"
    counters.release([(ME, "user:1", made.at_us)])
    assert held() == {}
    counters.release([])


def test_clocks_may_be_a_little_apart(plaza: World) -> None:
    made = claim("user:1")
    assert made
    counters.release([(ME, "user:1", made.at_us - SLACK_US)])
    assert held() == {}


def test_taking_a_claim_back_leaves_the_one_before_it(plaza: World) -> None:
    first = claim("user:1")
    again = claim("user:1")
    assert first
    assert again
    assert (first.before_us, again.before_us) == (0, first.at_us)
    counters.unclaim(ME, "user:1", again)
    assert held() == {"user:1": first.at_us}
    counters.unclaim(ME, "user:1", again)
    assert held() == {"user:1": first.at_us}, "a repeat takes nothing"
    counters.unclaim(ME, "user:1", first)
    assert held() == {}


@pytest.mark.parametrize("between", [False, True])
def test_a_claim_whose_reply_was_lost_is_taken_back_whole(
    plaza: World, monkeypatch: pytest.MonkeyPatch, between: bool
) -> None:
    """Its command runs twice, maybe with another claim of the same in between."""
    assert claim("user:9"), "the totals are in Redis"
    others: list[counters.Claim | None] = []
    run = redis.run

    def run_twice(*call: Any) -> Any:
        run(*call)
        monkeypatch.setattr(redis, "run", run)
        if between:
            others.append(claim("user:1"))
        return run(*call)

    monkeypatch.setattr(redis, "run", run_twice)
    made = claim("user:1")
    assert made
    for one in (made, *others):
        assert one
        counters.unclaim(ME, "user:1", one)
    assert set(held()) == {"user:9"}


def test_a_claim_that_was_made_again_is_not_taken_back_by_the_first(plaza: World) -> None:
    first, again = claim("user:1"), claim("user:1")
    assert first
    assert again
    counters.unclaim(ME, "user:1", first)
    assert held() == {"user:1": again.at_us}


def test_a_claim_that_is_counted_does_not_hold_again_when_its_repeat_is_taken_back(
    plaza: World,
) -> None:
    first = claim("user:1")
    assert first
    # far enough from it that the clocks can't be the reason
    redis.execute("ZADD", CLAIMS, first.at_us - 2 * SLACK_US, "user:1")
    again = claim("user:1")
    assert again
    counters.release([(ME, "user:1", again.before_us)])
    assert held() == {"user:1": again.at_us}
    counters.release([(ME, "user:1", again.before_us - 5)])  # delivered again, late
    counters.unclaim(ME, "user:1", again)
    assert held() == {}


@pytest.mark.parametrize("order", [*itertools.permutations(range(1, 4))])
def test_repeats_that_are_taken_back_in_any_order_leave_the_first_claim(
    plaza: World, order: tuple[int, ...]
) -> None:
    made = [one for _ in range(4) if (one := claim("user:1"))]
    assert len(made) == 4
    for index in order:
        counters.unclaim(ME, "user:1", made[index])
    assert held() == {"user:1": made[0].at_us}
    assert claim("user:2", most=2)
    assert claim("user:3", most=2) is None


def test_a_claim_that_nobody_released_lapses_after_an_hour(plaza: World) -> None:
    for number in range(1, 5):
        assert claim(f"user:{number}")
    hour_us = redis_store.CLAIM_TTL_MS * 1000
    redis.execute("ZADD", CLAIMS, redis_us() - hour_us - 1, "user:9")
    assert claim("user:5")
    assert "user:9" not in held()
    assert 0 < redis.execute("PTTL", CLAIMS) <= redis_store.CLAIM_TTL_MS


def test_totals_that_were_read_before_a_commit_do_not_make_room(plaza: World) -> None:
    """The consumer counted the fifth and released its claim while we still held the old total."""
    mysql.write("INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 4, 9)")
    old = counters.read_users([ME])
    redis.execute("FLUSHALL")
    mysql.write("UPDATE user_counter SET following_total = 5, version = 10")
    counters.refresh_projections([ME])
    redis_store.project_users(old, create=True)
    assert claim("user:1") is None
