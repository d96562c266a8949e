"""The limit of follows is kept at every step: hold, gate, consumer, projection."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from plaza.core import counters
from plaza.core.counters import UserCounter, redis_store
from plaza.core.counters.model import Hold
from plaza.core.reactions import FOLLOW, Target, persist, react, sweep
from plaza.core.reactions.model import ReactionEvent
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import commands, redis, terms
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.shards import shard_of
from tests.integration.conftest import Away
from tests.support.call_log import record_call
from tests.support.keyspace import find_keys
from tests.support.plaza import World, read_event
from tests.support.stores import add_users

USER = 7
COLUMN = "following_total"
HOLDS = f"{{{shard_of(f'user:{USER}')}}}:user:{USER}:holds"

COUNTED = HOLDS.replace("holds", "counted")


def holds() -> set[str]:
    return set(redis.execute("ZRANGE", HOLDS, 0, -1))


def following() -> int:
    return counters.mysql_store.read_users([USER])[USER].following_total


def follow(user_id: int, limit: int) -> bool:
    """Take a hold, then pass the gate; False at the limit."""
    target = Target("user", user_id)
    held = counters.hold(USER, COLUMN, limit, str(target))
    if held is None:
        return False
    if not react.react(FOLLOW, target, USER, True).changed:
        counters.cancel_hold(USER, str(target), held)
    return True


# ---------------------------------------------------------------- totals that are not in Redis


def test_a_hold_without_totals_in_redis_is_undecided(plaza: World) -> None:
    assert redis_store.hold(USER, COLUMN, 5, "user:1") == (False, None)
    assert holds() == set()
    counters.refresh_projections([USER])  # leaves a fence, not a total
    assert redis_store.hold(USER, COLUMN, 5, "user:1") == (False, None)


def test_a_hold_of_a_total_that_redis_does_not_have_is_undecided(plaza: World) -> None:
    """Given totals that a version of Plaza without this column stored."""
    redis.execute("HSET", redis_store.user_key(USER), "version", 1, "value", '{"posts_total":1}')
    assert redis_store.hold(USER, COLUMN, 5, "user:1") == (False, None)
    assert holds() == set()


def test_missing_totals_are_read_from_mysql_once(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    read = counters.mysql_store.read_users
    monkeypatch.setattr(
        counters.mysql_store, "read_users", lambda ids: record_call(calls, ids, read(ids))
    )
    assert counters.hold(USER, COLUMN, 5, "user:1")
    assert counters.hold(USER, COLUMN, 5, "user:2")
    assert calls == [[USER]]


def test_totals_that_a_consumer_changed_during_the_read_are_read_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = counters.mysql_store.read_users
    reads = []

    def slow(ids: list[int]) -> dict[int, UserCounter]:
        result = read(ids)
        reads.append(result)
        if len(reads) == 1:
            mysql.write(
                "INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 5, 1)"
            )
            counters.project_users(read(ids))
        return result

    monkeypatch.setattr(counters.mysql_store, "read_users", slow)
    assert counters.hold(USER, COLUMN, 5, "user:1") is None
    assert len(reads) == 2


def test_a_hold_raises_redis_down_when_redis_loses_the_totals(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "store_read_users", lambda totals, announced: None)
    with pytest.raises(RedisDown):
        counters.hold(USER, COLUMN, 5, "user:1")


def test_a_hold_after_its_deadline_is_refused(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller has given up, so nothing would release it."""
    counters.read_users([USER])
    for name, node in terms.known_nodes.items():
        late = node._replace(clock_offset_us=node.clock_offset_us - 10_000_000)
        monkeypatch.setitem(terms.known_nodes, name, late)
    with pytest.raises(RedisDown, match="after its deadline"):
        counters.hold(USER, COLUMN, 5, "user:1")
    assert holds() == set()


def test_without_mysql_a_hold_needs_totals_in_redis(plaza: World, mysql_away: Away) -> None:
    counters.read_users([USER])
    with mysql_away():
        assert counters.hold(USER, COLUMN, 5, "user:1")
        with pytest.raises(MysqlDown):
            counters.hold(8, COLUMN, 5, "user:1")


def test_a_hold_compares_the_limit_with_its_own_column(plaza: World) -> None:
    mysql.write(
        "INSERT INTO user_counter (user_id, following_total, posts_total, version)"
        " VALUES (7, 5, 1, 1)"
    )
    assert counters.hold(USER, "following_total", 5, "user:1") is None
    assert counters.hold(USER, "posts_total", 5, "user:1")


def hold_call(nonce: str) -> commands.Call:
    """Return a hold of a slot for user 1, below a limit of 5."""
    keys = (redis_store.user_key(USER), HOLDS, HOLDS.replace("holds", f"hold:{nonce}"))
    hour_ms, minute_ms = redis_store.HOLD_TTL_MS, 60_000
    return commands.Call(redis_store.HOLD, keys, (COLUMN, 5, "user:1", hour_ms, minute_ms, 2**53))


def test_a_repeat_after_its_hold_was_dropped_takes_a_slot_again(plaza: World) -> None:
    counters.read_users([USER])
    [[_, first_us, _]] = redis.run_all([hold_call("a")])
    assert redis.run_all([hold_call("a")]) == [["HELD", first_us, 0]]
    counters.cancel_hold(USER, "user:1", Hold(first_us, 0))
    assert holds() == set()
    [[code, again_us, before_us]] = redis.run_all([hold_call("a")])
    assert (code, again_us > first_us, before_us, holds()) == ("HELD", True, 0, {"user:1"})


def test_holds_and_their_replies_expire(plaza: World) -> None:
    assert counters.hold(USER, COLUMN, 5, "user:1")
    [reply] = find_keys("*:hold:*")
    assert 0 < redis.execute("PTTL", reply) <= 60_000
    assert 0 < redis.execute("PTTL", HOLDS) <= redis_store.HOLD_TTL_MS


def test_a_late_release_does_not_restore_a_hold_that_was_counted(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "MAX_CLOCK_SKEW_US", 0)
    results = [counters.hold(USER, COLUMN, 5, "user:1") for _ in range(3)]
    first, second, third = filter(None, results)
    counters.release([(USER, "user:1", second.at_us)])
    counters.release([(USER, "user:1", first.at_us)])
    assert 0 < redis.execute("PTTL", COUNTED) <= redis_store.HOLD_TTL_MS
    counters.cancel_hold(USER, "user:1", third)
    assert holds() == set()


def test_a_note_about_a_hold_that_was_taken_back_expires(plaza: World) -> None:
    first = counters.hold(USER, COLUMN, 5, "user:1")
    assert first
    assert counters.hold(USER, COLUMN, 5, "user:1")
    counters.cancel_hold(USER, "user:1", first)
    assert 0 < redis.execute("PTTL", COUNTED) <= redis_store.HOLD_TTL_MS


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
    lost: set[str] = set()
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
        if rng.random() < 0.05:  # the queue never gets the others
            lost |= {str(event.key.target) for event in events[:-12] if event.on}
            events = events[-12:]
        assert following() <= limit
    plaza.let_sweeps_be_due()
    sweep.sweep_outbox(resend_after_us=0)
    plaza.queues.drain()
    on = mysql.fetch_all("SELECT COUNT(*) FROM reaction WHERE actor_id = 7 AND state = 1")[0][0]
    assert counters.read_users([USER])[USER].following_total == following() == on <= limit
    assert holds() <= lost, "a follow that is never stored keeps its hold for an hour"
    for user_id in others:
        follow(user_id, limit)
    plaza.queues.drain()
    assert following() == limit, "all slots can be used"


def test_a_hold_counts_until_the_total_includes_its_follow(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "MAX_CLOCK_SKEW_US", 10**6)
    add_users(USER, 11)
    refresh, seen = counters.refresh_projections, []

    def refresh_later(users: list[int]) -> None:
        seen.append(holds())
        refresh(users)

    monkeypatch.setattr(counters, "refresh_projections", refresh_later)
    assert follow(11, 5)
    persist.save([read_event(body) for body in plaza.queues.take("reactions")])
    assert (seen, holds()) == ([{"user:11"}], set())


def test_two_follows_for_the_last_slot_are_one_follow(plaza: World) -> None:
    add_users(USER, 11, 12)
    mysql.write("INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 4, 1)")
    assert follow(11, 5)
    assert not follow(12, 5)
    assert follow(11, 5), "a repeated follow takes no slot"
    plaza.queues.drain()
    assert not follow(12, 5)
    assert following() == 5
    react.react(FOLLOW, Target("user", 11), USER, False)
    assert not follow(12, 5), "the slot is free when the unfollow is saved"
    plaza.queues.drain()
    assert follow(12, 5)
