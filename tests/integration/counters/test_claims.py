"""A limit holds at every step between a claim, the gate, the consumer and its projection."""

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

ME = 7
COLUMN = "following_total"
CLAIMS = f"{{{shard_of(f'user:{ME}')}}}:user:{ME}:claims"


def claims() -> set[str]:
    return set(redis.execute("ZRANGE", CLAIMS, 0, -1))


def following() -> int:
    return counters.mysql_store.read_users([ME])[ME].following_total


def follow(user_id: int, most: int) -> bool:
    """As far as the rules go: the claim, then the gate."""
    target = Target("user", user_id)
    made = counters.claim(ME, COLUMN, most, str(target))
    if made is None:
        return False
    if not react.react(FOLLOW, target, ME, True).changed:
        counters.unclaim(ME, str(target), made)
    return True


# ---------------------------------------------------------------- the totals are away


def test_without_the_totals_nobody_can_say_if_there_is_room(plaza: World) -> None:
    assert redis_store.claim(ME, COLUMN, 5, "user:1") == (False, None)
    assert claims() == set()
    counters.refresh_projections([ME])  # a fence is no total
    assert redis_store.claim(ME, COLUMN, 5, "user:1") == (False, None)


def test_totals_that_are_away_are_brought_once(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    read = counters.mysql_store.read_users
    monkeypatch.setattr(
        counters.mysql_store, "read_users", lambda ids: record_call(asked, ids, read(ids))
    )
    assert counters.claim(ME, COLUMN, 5, "user:1")
    assert counters.claim(ME, COLUMN, 5, "user:2")
    assert asked == [[ME]]


def test_totals_that_a_consumer_moved_while_they_were_brought_are_read_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = counters.mysql_store.read_users
    tries = []

    def slow(ids: list[int]) -> dict[int, UserCounter]:
        found = read(ids)
        tries.append(found)
        if len(tries) == 1:
            mysql.write(
                "INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 5, 1)"
            )
            counters.project_users(read(ids))
        return found

    monkeypatch.setattr(counters.mysql_store, "read_users", slow)
    assert counters.claim(ME, COLUMN, 5, "user:1") is None
    assert len(tries) == 2


def test_totals_that_redis_never_keeps_are_an_outage_and_no_permission(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "project_users", lambda totals, create: None)
    with pytest.raises(RedisDown):
        counters.claim(ME, COLUMN, 5, "user:1")


def test_a_claim_that_redis_executes_after_its_deadline_is_refused(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller has gone on without it, so nothing would release it."""
    counters.read_users([ME])
    for name, node in redis._nodes.items():
        late = node._replace(clock_offset_us=node.clock_offset_us - 10_000_000)
        monkeypatch.setitem(redis._nodes, name, late)
    with pytest.raises(RedisDown, match="too late"):
        counters.claim(ME, COLUMN, 5, "user:1")
    assert claims() == set()


def test_without_mysql_a_claim_needs_totals_in_redis(plaza: World, mysql_away: Away) -> None:
    counters.read_users([ME])
    with mysql_away():
        assert counters.claim(ME, COLUMN, 5, "user:1")
        with pytest.raises(MysqlDown):
            counters.claim(8, COLUMN, 5, "user:1")


def test_each_column_has_its_own_limit_of_one_total(plaza: World) -> None:
    mysql.write(
        "INSERT INTO user_counter (user_id, following_total, posts_total, version) VALUES (7, 5, 1, 1)"
    )
    assert counters.claim(ME, "following_total", 5, "user:1") is None
    assert counters.claim(ME, "posts_total", 5, "user:1")


# ---------------------------------------------------------------- through the consumer


@pytest.mark.parametrize("seed", range(8))
def test_whatever_comes_between_nobody_follows_more_than_the_limit(
    plaza: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Follows and unfollows, batches saved late and twice, totals that leave Redis."""
    monkeypatch.setattr(redis_store, "MAX_CLOCK_SKEW_US", 0)  # it is one clock here
    rng, most = random.Random(seed), 4
    others = range(11, 19)
    add_users(ME, *others)
    facts: list[ReactionEvent] = []
    doings: list[Callable[[], object]] = [
        lambda: follow(rng.choice(others), most),
        lambda: follow(rng.choice(others), most),
        lambda: react.react(FOLLOW, Target("user", rng.choice(others)), ME, False),
        lambda: persist.save(rng.sample(facts, rng.randint(1, len(facts)))) if facts else None,
        lambda: redis.execute("DEL", redis_store.user_key(ME)),
        lambda: counters.read_users([ME]),
    ]
    for _ in range(150):
        rng.choice(doings)()
        facts += [read_event(b) for b in plaza.queues.take("reactions")]
        facts = facts[-12:] if rng.random() < 0.05 else facts
        assert following() <= most
    plaza.let_sweeps_be_due()
    sweep.sweep_outbox(grace_us=0)
    plaza.queues.drain()
    on = mysql.fetch_all("SELECT COUNT(*) FROM reaction WHERE actor_id = 7 AND state = 1")[0][0]
    assert counters.read_users([ME])[ME].following_total == following() == on <= most
    assert claims() == set()
    for user_id in others:
        follow(user_id, most)
    plaza.queues.drain()
    assert following() == most, "all of the room is to be had"


def test_two_at_the_last_place_are_one_follow(plaza: World) -> None:
    add_users(ME, 11, 12)
    mysql.write("INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 4, 1)")
    assert follow(11, 5)
    assert not follow(12, 5)
    assert follow(11, 5), "who follows already takes no place"
    plaza.queues.drain()
    assert not follow(12, 5)
    assert following() == 5
    react.react(FOLLOW, Target("user", 11), ME, False)
    assert not follow(12, 5), "the place is free once that is saved"
    plaza.queues.drain()
    assert follow(12, 5)
