"""The limit of follows is kept at every step: claim, gate, consumer, projection."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from plaza import counters
from plaza.counters import UserCounter, redis_store
from plaza.infra import mysql, redis
from plaza.infra.mysql import MysqlDown
from plaza.infra.redis import RedisDown
from plaza.infra.shards import shard_of
from plaza.reactions import FOLLOW, Target, persist, react, sweep
from plaza.reactions.model import ReactionEvent
from tests.integration.conftest import Away
from tests.support.call_log import record_call
from tests.support.plaza import World, read_event
from tests.support.stores import add_users

USER = 7
COLUMN = "following_total"
CLAIMS = f"{{{shard_of(f'user:{USER}')}}}:user:{USER}:claims"


def claims() -> set[str]:
    return set(redis.execute("ZRANGE", CLAIMS, 0, -1))


def following() -> int:
    return counters.mysql_store.read_users([USER])[USER].following_total


def follow(user_id: int, limit: int) -> bool:
    """Take a claim, then pass the gate; False at the limit."""
    target = Target("user", user_id)
    claimed = counters.claim(USER, COLUMN, limit, str(target))
    if claimed is None:
        return False
    if not react.react(FOLLOW, target, USER, True).changed:
        counters.unclaim(USER, str(target), claimed)
    return True


# ---------------------------------------------------------------- totals that are not in Redis


def test_a_claim_without_totals_in_redis_is_undecided(plaza: World) -> None:
    assert redis_store.claim(USER, COLUMN, 5, "user:1") == (False, None)
    assert claims() == set()
    counters.refresh_projections([USER])  # leaves a fence, not a total
    assert redis_store.claim(USER, COLUMN, 5, "user:1") == (False, None)


def test_missing_totals_are_read_from_mysql_once(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    read = counters.mysql_store.read_users
    monkeypatch.setattr(
        counters.mysql_store, "read_users", lambda ids: record_call(calls, ids, read(ids))
    )
    assert counters.claim(USER, COLUMN, 5, "user:1")
    assert counters.claim(USER, COLUMN, 5, "user:2")
    assert calls == [[USER]]


def test_totals_that_a_consumer_changed_during_the_read_are_read_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = counters.mysql_store.read_users
    reads = []

    def slow(ids: list[int]) -> dict[int, UserCounter]:
        found = read(ids)
        reads.append(found)
        if len(reads) == 1:
            mysql.write(
                "INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 5, 1)"
            )
            counters.project_users(read(ids))
        return found

    monkeypatch.setattr(counters.mysql_store, "read_users", slow)
    assert counters.claim(USER, COLUMN, 5, "user:1") is None
    assert len(reads) == 2


def test_a_claim_raises_redis_down_when_redis_loses_the_totals(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "store_read_users", lambda totals, announced: None)
    with pytest.raises(RedisDown):
        counters.claim(USER, COLUMN, 5, "user:1")


def test_a_claim_after_its_deadline_is_refused(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller has given up, so nothing would release it."""
    counters.read_users([USER])
    for name, node in redis._nodes.items():
        late = node._replace(clock_offset_us=node.clock_offset_us - 10_000_000)
        monkeypatch.setitem(redis._nodes, name, late)
    with pytest.raises(RedisDown, match="after its deadline"):
        counters.claim(USER, COLUMN, 5, "user:1")
    assert claims() == set()


def test_without_mysql_a_claim_needs_totals_in_redis(plaza: World, mysql_away: Away) -> None:
    counters.read_users([USER])
    with mysql_away():
        assert counters.claim(USER, COLUMN, 5, "user:1")
        with pytest.raises(MysqlDown):
            counters.claim(8, COLUMN, 5, "user:1")


def test_a_claim_compares_the_limit_with_its_own_column(plaza: World) -> None:
    mysql.write(
        "INSERT INTO user_counter (user_id, following_total, posts_total, version)"
        " VALUES (7, 5, 1, 1)"
    )
    assert counters.claim(USER, "following_total", 5, "user:1") is None
    assert counters.claim(USER, "posts_total", 5, "user:1")


# ---------------------------------------------------------------- with the consumer


@pytest.mark.parametrize("seed", range(8))
def test_random_follows_never_exceed_the_limit(
    plaza: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random follows, unfollows, late and repeated batches, and totals dropped from Redis."""
    monkeypatch.setattr(redis_store, "MAX_CLOCK_SKEW_US", 0)  # the test has one clock
    rng, limit = random.Random(seed), 4
    others = range(11, 19)
    add_users(USER, *others)
    events: list[ReactionEvent] = []
    steps: list[Callable[[], object]] = [
        lambda: follow(rng.choice(others), limit),
        lambda: follow(rng.choice(others), limit),
        lambda: react.react(FOLLOW, Target("user", rng.choice(others)), USER, False),
        lambda: persist.save(rng.sample(events, rng.randint(1, len(events)))) if events else None,
        lambda: redis.execute("DEL", redis_store.user_key(USER)),
        lambda: counters.read_users([USER]),
    ]
    for _ in range(150):
        rng.choice(steps)()
        events += [read_event(b) for b in plaza.queues.take("reactions")]
        events = events[-12:] if rng.random() < 0.05 else events
        assert following() <= limit
    plaza.let_sweeps_be_due()
    sweep.sweep_outbox(grace_us=0)
    plaza.queues.drain()
    on = mysql.fetch_all("SELECT COUNT(*) FROM reaction WHERE actor_id = 7 AND state = 1")[0][0]
    assert counters.read_users([USER])[USER].following_total == following() == on <= limit
    assert claims() == set()
    for user_id in others:
        follow(user_id, limit)
    plaza.queues.drain()
    assert following() == limit, "all places can be used"


def test_two_follows_for_the_last_place_are_one_follow(plaza: World) -> None:
    add_users(USER, 11, 12)
    mysql.write("INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 4, 1)")
    assert follow(11, 5)
    assert not follow(12, 5)
    assert follow(11, 5), "a repeated follow takes no place"
    plaza.queues.drain()
    assert not follow(12, 5)
    assert following() == 5
    react.react(FOLLOW, Target("user", 11), USER, False)
    assert not follow(12, 5), "the place is free when the unfollow is saved"
    plaza.queues.drain()
    assert follow(12, 5)
