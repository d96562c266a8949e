"""Follows in the consumer: totals and Redis agree after races, crashes and late events."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest

from plaza.core import counters, reactions
from plaza.core.counters import UserCounter, redis_store
from plaza.core.reactions import (
    FOLLOW,
    LIKE,
    Target,
    persist,
    react,
    redis_commits,
    redis_keys,
    sweep,
)
from plaza.core.reactions.model import Count, ReactionEvent
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, FOLLOWS, REACTIONS
from plaza.core.switches import refresh
from plaza.infra.mysql import mysql
from plaza.infra.mysql.driver import SharedTlsConnection
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues import dead_letters
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.shards import shard_of
from tests.integration.conftest import Away
from tests.support.batches import consume
from tests.support.call_log import record_call
from tests.support.consumers import (
    consumer,
    deadlocks,
    end,
    go,
    insert_counter,
    lock_user_counter,
    make_event,
    save_at_once,
    statements,
)
from tests.support.failures import Killed, failing
from tests.support.plaza import World, decode, read_event
from tests.support.stores import (
    add_users,
    counter,
    outbox,
    put_totals,
    read_counts,
    received,
    rows,
    total,
)

CELEBRITY = Target("user", 1_000_000)


def user(user_id: int) -> Target:
    return Target("user", user_id)


def follow(actor: int, user_id: int, on: bool = True, at: int = 0) -> ReactionEvent:
    return make_event(actor, on, at, user(user_id), FOLLOW)


def in_mysql(*user_ids: int) -> list[tuple[int, int]]:
    """Return (followers, following) of each user."""
    users = counters.mysql_store.read_users(user_ids)
    return [(users[i].followers_total, users[i].following_total) for i in user_ids]


def in_redis(*user_ids: int) -> dict[int, UserCounter]:
    return redis_store.read_users(user_ids)


def holds(user_id: int) -> set[str]:
    key = f"{{{shard_of(f'user:{user_id}')}}}:user:{user_id}:holds"
    return set(redis.execute("ZRANGE", key, 0, -1))


def published(world: World) -> list[ReactionEvent]:
    return [read_event(body) for body in world.queues.take("reactions")]


# ---------------------------------------------------------------- one batch


@pytest.mark.parametrize("kind", [LIKE, FOLLOW], ids=lambda kind: kind.name)
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1), (3, 1, 2, 1, 3)])
def test_on_off_on_of_one_actor_in_one_batch_counts_once(
    plaza: World, kind: reactions.Kind, order: Sequence[int]
) -> None:
    target = Target("post", 11) if kind is LIKE else user(11)
    plaza.add(Target("post", 11), author_id=99)
    owner = 99 if kind is LIKE else 11
    persist.save([make_event(7, at != 2, at, target, kind) for at in order])
    assert counter(target, kind) == received(owner, kind) == 1
    assert in_mysql(7) == [(0, 1 if kind is FOLLOW else 0)]
    persist.save([make_event(7, False, 4, target, kind), make_event(7, False, 5, target, kind)])
    assert counter(target, kind) == received(owner, kind) == 0
    assert in_mysql(7) == [(0, 0)]


def test_the_actors_totals_change_when_the_targets_total_does_not(plaza: World) -> None:
    """Given a follow and an unfollow of one target in a batch."""
    persist.save([follow(7, 1, at=1)])
    persist.save([follow(7, 1, on=False, at=2), follow(8, 1, at=2)])
    assert in_mysql(1, 7, 8) == [(1, 0), (0, 0), (0, 1)]


def test_a_batch_of_likes_and_follows_updates_all_counters(plaza: World) -> None:
    post = Target("post", 11)
    plaza.add(post, author_id=7)
    persist.save(
        [
            make_event(7, target=post),  # the author
            make_event(8, target=post),
            follow(7, 8),
            follow(8, 7),
            follow(9, 7),
            follow(9, 8),
            follow(9, 8, on=False, at=1),
        ]
    )
    assert counters.read_users([7, 8, 9]) == {
        7: UserCounter(2, 1, likes_received_total=2, version=1),
        8: UserCounter(1, 1, version=1),
        9: UserCounter(0, 1, version=1),
    }
    assert (counter(user(7), FOLLOW), counter(user(8), FOLLOW), counter(post)) == (2, 1, 2)


def test_repeated_follows_change_nothing(plaza: World) -> None:
    batch = [follow(7, 8), follow(8, 7), follow(7, 8, on=False, at=1)]
    persist.save(batch)

    def read_tables() -> list[object]:
        tables = ("reaction", "reaction_log", "counter", "user_counter")
        return [mysql.fetch_all(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4") for table in tables]

    before = read_tables()
    persist.save(batch[::-1] * 2)
    assert read_tables() == before


# ---------------------------------------------------------------- large batches


def test_3200_follows_of_one_user_take_three_packets_a_batch(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one for the counter that is missing, and what Redis has of users."""
    fans = list(range(1, 3_201))
    add_users(CELEBRITY.id, *fans)
    for fan in fans:
        assert react.react(FOLLOW, CELEBRITY, fan, True).changed
    events = published(plaza)
    events += events[::5]
    random.Random(3).shuffle(events)
    packets, batches = 0, 0
    execute = SharedTlsConnection._execute_command  # type: ignore[attr-defined]

    def count_and_execute(connection: object, command: int, sql: bytes) -> None:
        nonlocal packets
        packets += 1
        execute(connection, command, sql)

    monkeypatch.setattr(SharedTlsConnection, "_execute_command", count_and_execute)
    for start in range(0, len(events), 1_000):
        persist.save(events[start : start + 1_000])
        batches += 1
    assert batches == 4
    assert packets <= (3 + 2) * batches + 3

    assert counter(CELEBRITY, FOLLOW) == 3_200
    assert in_mysql(CELEBRITY.id) == [(3_200, 0)]
    assert set(in_mysql(*fans)) == {(0, 1)}
    assert (total(CELEBRITY, FOLLOW), outbox(CELEBRITY, FOLLOW)) == (3_200, {})
    assert read_counts([(FOLLOW, CELEBRITY)], 77) == ([Count(3_200, True)], True)


def test_the_number_of_statements_does_not_grow_with_a_transaction(plaza: World) -> None:
    plaza.add(Target("post", 11))
    keys = [("post", 11, "like"), *(("user", n, "follow") for n in range(1, 8))]
    counters.run_in_transaction(lambda cursor: counters.lock_targets(cursor, keys))
    refresh.read()  # a new process asks MySQL for the switches, once
    persist.save([*(follow(8, n) for n in range(1, 8)), make_event(9, at=9)])  # first groups
    costs = set()
    for n, size in enumerate((1, 10, persist.EVENTS_PER_TRANSACTION - 1), 1):
        batch = [follow(n * 10_000 + actor, actor % 7 + 1) for actor in range(11, 11 + size)]
        before = statements()
        persist.save([*batch, make_event(n, at=n)])
        costs.add(statements() - before - 1)
    assert len(costs) == 1, costs


# ---------------------------------------------------------------- concurrent consumers


def test_mutual_follows_in_two_consumers_cause_no_deadlock(plaza: World, mysql_url: str) -> None:
    """Both consumers update the same 100 counters, in opposite order of their events."""
    forth = [follow(n, n + 50) for n in range(1, 51)]
    back = [follow(n + 50, n) for n in range(1, 51)]
    before = deadlocks()
    save_at_once(lock_user_counter(mysql_url, 75), forth, back)
    assert deadlocks() == before
    assert set(in_mysql(*range(1, 101))) == {(1, 1)}


def test_likes_and_follows_in_two_consumers_cause_no_deadlock(plaza: World, mysql_url: str) -> None:
    """One consumer updates authors from the last to the middle, the other from the first."""
    for n in range(1, 51):
        plaza.add(Target("post", n), author_id=101 - n)
        plaza.add(Target("post", n + 50), author_id=n)
    events = [make_event(n + 50, target=Target("post", n)) for n in range(1, 51)]
    events += [follow(n, n + 50, at=1) for n in range(1, 51)]
    other = [follow(n + 50, n, at=2) for n in range(50, 0, -1)]
    other += [make_event(n, target=Target("post", n + 50), at=3) for n in range(50, 0, -1)]
    before = deadlocks()
    save_at_once(lock_user_counter(mysql_url, 75), events, other)
    assert deadlocks() == before
    assert set(in_mysql(*range(1, 101))) == {(1, 1)}
    assert {received(n) for n in range(1, 101)} == {1}


def test_first_counters_of_many_users_in_two_consumers_cause_no_deadlock(
    plaza: World, mysql_url: str
) -> None:
    """Given batches whose users lie between each other, and one user that both have. For a
    list of 1,000 ids MariaDB would scan all users."""
    last = 10_000
    item = [follow(n + last, n) for n in [*range(1, 1_998, 2), last]]
    other = [follow(n + last + 1, n, at=1) for n in [*range(2, 1_999, 2), last]]
    before = deadlocks()
    save_at_once(insert_counter(mysql_url, user(last), FOLLOW.name), item, other)
    assert deadlocks() == before
    totals = mysql.fetch_all("SELECT COUNT(*), SUM(total), SUM(version) FROM counter")
    assert totals == [(1_999, 2_000, 2_000)]


def test_two_consumers_of_mutual_follows_count_each_once(plaza: World) -> None:
    users = range(1, 41)
    pairs = [(a, b) for a in users for b in users if a != b]
    random.Random(5).shuffle(pairs)
    forth = [[follow(a, b) for a, b in pairs[i : i + 60]] for i in range(0, len(pairs), 60)]
    back = [[follow(b, a) for a, b in pairs[i : i + 60]] for i in range(0, len(pairs), 60)][::-1]
    before = deadlocks()
    with consumer(forth) as item, consumer(back) as other:
        go(item)
        go(other)
        end(item)
        end(other)
    assert deadlocks() == before
    assert set(in_mysql(*users)) == {(39, 39)}
    assert {counter(user(n), FOLLOW) for n in users} == {39}


# ---------------------------------------------------------------- after the commit


def test_new_totals_are_projected_and_holds_released(plaza: World) -> None:
    add_users(7, 8)
    counters.read_users([7, 8])
    assert counters.hold(7, "following_total", 5, "user:8")
    react.react(FOLLOW, user(8), 7, True)
    assert holds(7) == {"user:8"}
    plaza.queues.drain()
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, 0, version=1)}
    assert holds(7) == set()


@pytest.mark.parametrize("dies_in", ["apply_all", "project_users", "release"])
def test_a_redelivery_completes_a_consumer_killed_after_its_commit(
    plaza: World, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    add_users(7, 8)
    counters.read_users([7, 8])
    assert counters.hold(7, "following_total", 5, "user:8")
    react.react(FOLLOW, user(8), 7, True)
    events = published(plaza)

    with monkeypatch.context() as patch:
        patch.setattr(
            redis_commits if dies_in == "apply_all" else counters, dies_in, failing(Killed)
        )
        with pytest.raises(Killed):
            persist.save(events)
    assert in_mysql(7, 8) == [(0, 1), (1, 0)]
    assert holds(7) == {"user:8"}, "the hold stays until Redis has the total"

    persist.save(events)  # the redelivery
    if dies_in == "apply_all":  # Redis waits 1 s for the missing commit, then hydrates
        key = redis_keys.keys_of(FOLLOW.name, user(8)).meta
        redis.execute("HINCRBY", key, "blocked", -2_000_000)
        persist.save(events)
    assert in_mysql(7, 8) == [(0, 1), (1, 0)]
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, 0, version=1)}
    assert holds(7) == set()
    assert outbox(user(8), FOLLOW) == {}


def test_a_read_between_commit_and_projection_does_not_lose_the_new_totals(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters.read_users([7, 8])
    project, reads = counters.project_users, []

    def read_first(totals: dict[int, UserCounter]) -> None:
        redis.execute("DEL", redis_store.user_key(8))
        reads.append(counters.read_users([7, 8]))
        project(totals)

    monkeypatch.setattr(counters, "project_users", read_first)
    persist.save([follow(7, 8)])
    assert reads == [{7: UserCounter(), 8: UserCounter(1, version=1)}]
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, version=1)}


@pytest.mark.parametrize("loss", ["the key", "the key, and another reader announced itself"])
def test_totals_whose_announcement_was_lost_before_a_commit_are_not_stored(
    plaza: World, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    """Given a reader between its announcement and MySQL, and a consumer that does not find it."""
    read = counters.mysql_store.read_users

    def read_then_save(ids: list[int]) -> dict[int, UserCounter]:
        monkeypatch.setattr(counters.mysql_store, "read_users", read)
        result = read(ids)
        redis.pipeline([("DEL", redis_store.user_key(user_id)) for user_id in ids])
        persist.save([follow(7, 8)])
        if loss != "the key":
            redis_store.announce_reads(ids)  # by a reader that dies
        return result

    monkeypatch.setattr(counters.mysql_store, "read_users", read_then_save)
    assert counters.read_users([7, 8]) == {7: UserCounter(), 8: UserCounter()}
    assert in_redis(7, 8) == {}
    assert counters.read_users([7, 8]) == {
        7: UserCounter(0, 1, version=1),
        8: UserCounter(1, version=1),
    }


def test_a_batch_committed_while_a_reader_has_the_old_totals_is_projected(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a reader between MySQL and Redis."""
    read = counters.mysql_store.read_users

    def read_then_save(ids: list[int]) -> dict[int, UserCounter]:
        monkeypatch.setattr(counters.mysql_store, "read_users", read)
        result = read(ids)
        persist.save([follow(7, 8)])
        return result

    monkeypatch.setattr(counters.mysql_store, "read_users", read_then_save)
    assert counters.read_users([7, 8]) == {7: UserCounter(), 8: UserCounter()}
    assert counters.read_users([7, 8]) == {
        7: UserCounter(0, 1, version=1),
        8: UserCounter(1, version=1),
    }


def test_a_batch_leaves_nothing_in_redis_for_users_whose_totals_are_not_read(plaza: World) -> None:
    add_users(7, 8)
    before = statements()
    persist.save([follow(7, 8), follow(9, 8, at=2)])
    cost = statements() - before
    assert redis.execute("KEYS", "*:user:*:counters") == []
    counters.read_users([8])
    before = statements()
    persist.save([follow(10, 8), follow(11, 8, at=2)])
    assert in_redis(8) == {8: UserCounter(4, version=2)}
    assert statements() - before <= cost + 1


def test_totals_that_mysql_does_not_return_after_the_commit_are_projected_later(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters.read_users([7, 8])

    with monkeypatch.context() as patch:
        patch.setattr(
            counters, "refresh_projections", failing(mysql.MysqlDown("unavailable in this test"))
        )
        persist.save([follow(7, 8)])
    assert in_redis(7, 8) == {7: UserCounter(), 8: UserCounter()}
    for body in plaza.queues.take("acknowledgements"):
        persist.acknowledge_again([ACKNOWLEDGEMENTS.decode(str(body))])
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, version=1)}


def test_without_redis_acknowledgements_are_queued_and_projected_later(
    plaza: World, redis_away: Away
) -> None:
    add_users(7, 8)
    with redis_away():
        assert react.react(FOLLOW, user(8), 7, True).total is None
        persist.save(published(plaza))
        [body] = plaza.queues.messages["acknowledgements"]
        [commit] = ACKNOWLEDGEMENTS.decode(str(body)).commits
        assert (commit.kind, commit.target) == (FOLLOW, user(8))
        assert [actor for actor, _, _ in commit.rows] == [7]
        assert in_mysql(7, 8) == [(0, 1), (1, 0)]
    assert counters.hold(7, "following_total", 5, "user:9")
    # A reader may have stored a newer projection than the late acknowledgement does.
    put_totals({8: UserCounter(0, 0, version=0)})
    plaza.queues.drain()
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, version=1)}
    assert holds(7) == {"user:9"}, "this follow is not stored"


@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "by a queued acknowledgement"])
def test_an_unfollow_does_not_release_the_hold_of_a_follow_on_its_way(
    plaza: World, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    add_users(7, 8)
    react.react(FOLLOW, user(8), 7, True)
    plaza.queues.drain()
    assert counters.hold(7, "following_total", 5, "user:8")
    react.react(FOLLOW, user(8), 7, False)
    with monkeypatch.context() as patch:
        if is_late:
            patch.setattr(counters, "project_users", failing(RedisDown("by the test")))
        persist.save(published(plaza))
    assert len(plaza.queues.messages["acknowledgements"]) == is_late
    plaza.queues.drain()
    assert (in_mysql(7), holds(7)) == ([(0, 0)], {"user:8"})


def test_a_queued_acknowledgement_releases_the_holds_of_stored_follows(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_users(7, 8, 9)
    for user_id in (8, 9):
        assert counters.hold(7, "following_total", 5, f"user:{user_id}")
        react.react(FOLLOW, user(user_id), 7, True)
    first, second = published(plaza)

    with monkeypatch.context() as patch:
        patch.setattr(counters, "project_users", failing(RedisDown("by the test")))
        persist.save([first])
    assert holds(7) == {"user:8", "user:9"}
    plaza.queues.drain()
    assert holds(7) == {"user:9"}
    assert in_redis(7)[7] == UserCounter(0, 1, version=1)
    persist.save([second])
    assert holds(7) == set()


def test_without_redis_and_the_queue_the_batch_is_retried(plaza: World, redis_away: Away) -> None:
    plaza.queues.away = True
    with redis_away(), pytest.raises(QueueDown):
        persist.save([follow(7, 8)])
    plaza.queues.away = False
    counters.read_users([7])
    persist.save([follow(7, 8)])
    assert in_mysql(7, 8) == [(0, 1), (1, 0)]
    assert in_redis(7)[7] == UserCounter(0, 1, version=1)


def test_follows_that_the_queue_refuses_are_sent_by_the_sweeper(plaza: World) -> None:
    plaza.queues.away = True
    persist.save([follow(7, 8), follow(7, 9)])
    assert in_mysql(7) == [(0, 2)], "saved, and not retried"
    plaza.queues.away = False
    assert sweep.sweep_outbox() == 1
    assert [decode(FOLLOWS, body) for body in plaza.queues.take(FOLLOWS)] == [[(7, 8), (7, 9)]]
    assert mysql.fetch_all("SELECT COUNT(*) FROM spilled_message") == [(0,)]


def test_follows_that_neither_queue_nor_mysql_takes_are_saved_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.queues.away = True
    monkeypatch.setattr(persist, "spill", failing(MysqlDown("MySQL is down (simulated)")))
    with pytest.raises(MysqlDown):
        persist.save([follow(7, 8)])


# ---------------------------------------------------------------- invalid messages


def test_invalid_follows_are_dead_lettered_and_the_others_stored(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = json.loads(REACTIONS.encode(follow(7, 8)))
    bad = [
        good | {"target_type": "post"},
        good | {"kind": "like"},
        good | {"kind": "collect"},
        good | {"target_id": "8"},
        good | {"target_id": 0},
        good | {"actor_id": -7},
        good | {"actor_id": 2**63},
        good | {"state": True},
        good | {"version": "1"},
        {},
        [good],
    ]
    bodies = [
        json.dumps(good),
        *map(json.dumps, bad),
        "follow",
        REACTIONS.encode(follow(9, 8)),
    ]
    dead_lettered: list[object] = []
    monkeypatch.setattr(
        dead_letters,
        "dead_letter",
        lambda *args: record_call(dead_lettered, args[1]["messageId"], True),
    )
    response = consume(
        {
            "Records": [
                {
                    "messageId": str(n),
                    "receiptHandle": str(n),
                    "body": body,
                    "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1"},
                }
                for n, body in enumerate(bodies)
            ]
        },
        "reactions",
        REACTIONS.decode,
        persist.save,
    )
    assert response == {"batchItemFailures": []}
    assert dead_lettered == [str(n) for n in range(1, len(bodies) - 1)]
    assert set(rows(user(8), FOLLOW)) == {7, 9}
    assert in_mysql(7, 8, 9) == [(0, 1), (2, 0), (0, 1)]


def test_an_acknowledgement_with_invalid_keys_is_an_invalid_message() -> None:
    for key in (["post", 8, "follow", 7], ["user", 8, "like", 7], ["user", 8, "follow"]):
        with pytest.raises(InvalidMessage):
            ACKNOWLEDGEMENTS.decode(json.dumps({"protocol": 2, "commits": [], "keys": [key]}))
    body = '{"protocol":2,"commits":[],"keys":[["user",8,"follow",7]]}'
    assert ACKNOWLEDGEMENTS.decode(str(body)).keys == [("user", 8, "follow", 7)]
