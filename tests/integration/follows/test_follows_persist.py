"""Follows through the consumer: followers, following and Redis agree, whoever is late or dies."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest

from plaza import counters, reactions
from plaza.counters import UserCounter, redis_store
from plaza.infra import dead_letters, mysql, redis
from plaza.infra.consumer import consume
from plaza.infra.messages import InvalidMessage
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.shards import shard_of
from plaza.reactions import (
    FOLLOW,
    LIKE,
    Target,
    persist,
    queries,
    react,
    redis_commits,
    redis_keys,
)
from plaza.reactions.model import ReactionEvent
from plaza.reactions.queues import Unacknowledged
from tests.integration.conftest import Away
from tests.support.call_log import record_call
from tests.support.consumers import (
    consumer,
    deadlocks,
    end,
    go,
    lock_user_counter,
    make_event,
    save_at_once,
    statements,
)
from tests.support.plaza import World, read_event
from tests.support.stores import add_users, counter, outbox, received, rows, total

IDOL = Target("user", 1_000_000)


def user(user_id: int) -> Target:
    return Target("user", user_id)


def follow(actor: int, user_id: int, on: bool = True, at: int = 0) -> ReactionEvent:
    return make_event(actor, on, at, user(user_id), FOLLOW)


def in_mysql(*user_ids: int) -> list[tuple[int, int]]:
    """(followers, following) of each."""
    found = counters.mysql_store.read_users(user_ids)
    return [(found[i].followers_total, found[i].following_total) for i in user_ids]


def in_redis(*user_ids: int) -> dict[int, UserCounter]:
    return redis_store.read_users(user_ids)


def claims(user_id: int) -> set[str]:
    key = f"{{{shard_of(f'user:{user_id}')}}}:user:{user_id}:claims"
    return set(redis.execute("ZRANGE", key, 0, -1))


def published(world: World) -> list[ReactionEvent]:
    return [read_event(body) for body in world.queues.take("reactions")]


# ---------------------------------------------------------------- one batch


@pytest.mark.parametrize("kind", [LIKE, FOLLOW], ids=lambda kind: kind.name)
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1), (3, 1, 2, 1, 3)])
def test_on_off_on_of_one_person_in_one_batch_is_one(
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


def test_the_actor_s_total_moves_also_when_that_of_the_target_does_not(plaza: World) -> None:
    """One comes and one goes."""
    persist.save([follow(7, 1, at=1)])
    persist.save([follow(7, 1, on=False, at=2), follow(8, 1, at=2)])
    assert in_mysql(1, 7, 8) == [(1, 0), (0, 0), (0, 1)]


def test_a_batch_of_everything_is_counted_where_it_belongs(plaza: World) -> None:
    post = Target("post", 11)
    plaza.add(post, author_id=7)
    persist.save(
        [
            make_event(7, target=post),  # the author likes it, and follows 8, who follows them
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


def test_the_same_follows_again_change_nothing(plaza: World) -> None:
    batch = [follow(7, 8), follow(8, 7), follow(7, 8, on=False, at=1)]
    persist.save(batch)

    def everything() -> list[object]:
        tables = ("reaction", "reaction_log", "content_counter", "user_counter")
        return [mysql.fetch_all(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4") for table in tables]

    before = everything()
    persist.save(batch[::-1] * 2)
    assert everything() == before


# ---------------------------------------------------------------- many at once


def test_3200_follows_of_one_user_at_once_are_a_handful_of_statements(plaza: World) -> None:
    fans = list(range(1, 3_201))
    add_users(IDOL.id, *fans)
    for fan in fans:
        assert react.react(FOLLOW, IDOL, fan, True).changed
    facts = published(plaza)
    facts += facts[::5]
    random.Random(3).shuffle(facts)
    before, batches = statements(), 0
    for start in range(0, len(facts), 1_000):
        persist.save(facts[start : start + 1_000])
        batches += 1
    assert batches == 4
    assert statements() - before - 1 <= 12 * batches

    assert counter(IDOL, FOLLOW) == 3_200
    assert in_mysql(IDOL.id) == [(3_200, 0)]
    assert set(in_mysql(*fans)) == {(0, 1)}
    assert (total(IDOL, FOLLOW), outbox(IDOL, FOLLOW)) == (3_200, {})
    assert queries.read_counts([(FOLLOW, IDOL)], 77) == ([(3_200, True)], True)


def test_the_number_of_statements_is_the_same_whatever_a_batch_holds(plaza: World) -> None:
    plaza.add(Target("post", 11))
    followed = [Target("user", n) for n in range(1, 8)]
    mysql.run_in_transaction(
        lambda cursor: counters.lock_content(cursor, [Target("post", 11), *followed])
    )
    taken = set()
    for n, size in enumerate((1, 10, 1_000), 1):
        batch = [follow(n * 10_000 + actor, actor % 7 + 1) for actor in range(10, 10 + size)]
        before = statements()
        persist.save([*batch, make_event(n, at=n)])
        taken.add(statements() - before - 1)
    assert len(taken) == 1, taken


# ---------------------------------------------------------------- at the same time


def test_mutual_follows_in_two_consumers_do_not_lock_each_other_out(
    plaza: World, mysql_url: str
) -> None:
    """Both move the counters of all 100, one from the front and one from the back."""
    there = [follow(n, n + 50) for n in range(1, 51)]
    back = [follow(n + 50, n) for n in range(1, 51)]
    before = deadlocks()
    save_at_once(lock_user_counter(mysql_url, 75), there, back)
    assert deadlocks() == before
    assert set(in_mysql(*range(1, 101))) == {(1, 1)}


def test_likes_of_authors_and_follows_in_two_consumers_do_not_lock_each_other_out(
    plaza: World, mysql_url: str
) -> None:
    """One moves authors from the last to the middle, the other from the first."""
    for n in range(1, 51):
        plaza.add(Target("post", n), author_id=101 - n)
        plaza.add(Target("post", n + 50), author_id=n)
    one = [make_event(n + 50, target=Target("post", n)) for n in range(1, 51)]
    one += [follow(n, n + 50, at=1) for n in range(1, 51)]
    other = [follow(n + 50, n, at=2) for n in range(50, 0, -1)]
    other += [make_event(n, target=Target("post", n + 50), at=3) for n in range(50, 0, -1)]
    before = deadlocks()
    save_at_once(lock_user_counter(mysql_url, 75), one, other)
    assert deadlocks() == before
    assert set(in_mysql(*range(1, 101))) == {(1, 1)}
    assert {received(n) for n in range(1, 101)} == {1}


def test_consumers_that_meet_again_and_again_count_everybody_once(plaza: World) -> None:
    people = range(1, 41)
    pairs = [(a, b) for a in people for b in people if a != b]
    random.Random(5).shuffle(pairs)
    there = [[follow(a, b) for a, b in pairs[i : i + 60]] for i in range(0, len(pairs), 60)]
    back = [[follow(b, a) for a, b in pairs[i : i + 60]] for i in range(0, len(pairs), 60)][::-1]
    before = deadlocks()
    with consumer(there) as one, consumer(back) as other:
        go(one)
        go(other)
        end(one)
        end(other)
    assert deadlocks() == before
    assert set(in_mysql(*people)) == {(39, 39)}
    assert {counter(user(n), FOLLOW) for n in people} == {39}


# ---------------------------------------------------------------- after the commit


def test_what_is_counted_is_projected_to_who_is_read_and_claims_end(plaza: World) -> None:
    add_users(7, 8)
    counters.read_users([7, 8])
    assert counters.claim(7, "following_total", 5, "user:8")
    react.react(FOLLOW, user(8), 7, True)
    assert claims(7) == {"user:8"}
    plaza.queues.drain()
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, 0, version=1)}
    assert claims(7) == set()


@pytest.mark.parametrize("dies_in", ["apply_all", "project_users", "release"])
def test_a_consumer_that_died_after_its_commit_is_made_good_by_the_next(
    plaza: World, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    add_users(7, 8)
    counters.read_users([7, 8])
    assert counters.claim(7, "following_total", 5, "user:8")
    react.react(FOLLOW, user(8), 7, True)
    facts = published(plaza)

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(redis_commits if dies_in == "apply_all" else counters, dies_in, die)
        with pytest.raises(Killed):
            persist.save(facts)
    assert in_mysql(7, 8) == [(0, 1), (1, 0)]
    assert claims(7) == {"user:8"}, "until it is counted where claims are made"

    persist.save(facts)  # the queue delivers again
    if dies_in == "apply_all":  # Redis waits for that commit a second, then reads MySQL
        key = redis_keys.keys_of(FOLLOW.name, user(8)).meta
        redis.execute("HINCRBY", key, "blocked", -2_000_000)
        persist.save(facts)
    assert in_mysql(7, 8) == [(0, 1), (1, 0)]
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, 0, version=1)}
    assert claims(7) == set()
    assert outbox(user(8), FOLLOW) == {}


def test_who_reads_between_commit_and_projection_sees_the_old_and_then_the_new(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters.read_users([7, 8])
    project, seen = counters.project_users, []

    def read_first(totals: dict[int, UserCounter]) -> None:
        redis.execute("DEL", redis_store.user_key(8))
        seen.append(counters.read_users([7, 8]))
        project(totals)

    monkeypatch.setattr(counters, "project_users", read_first)
    persist.save([follow(7, 8)])
    assert seen == [{7: UserCounter(), 8: UserCounter(1, version=1)}]
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, version=1)}


def test_while_redis_is_away_settling_waits_in_its_queue_and_then_all_is_told(
    plaza: World, redis_away: Away
) -> None:
    add_users(7, 8)
    with redis_away():
        assert react.react(FOLLOW, user(8), 7, True).total is None
        persist.save(published(plaza))
        [waiting] = plaza.queues.messages["acknowledgements"]
        [commit] = Unacknowledged.from_json(waiting).commits
        assert (commit.kind, commit.target) == (FOLLOW, user(8))
        assert [actor for actor, _, _ in commit.rows] == [7]
        assert in_mysql(7, 8) == [(0, 1), (1, 0)]
    assert counters.claim(7, "following_total", 5, "user:9")
    # What the settle brings is older than what a reader may have brought by then; it does no harm.
    redis_store.project_users({8: UserCounter(0, 0, version=0)}, create=True)
    plaza.queues.drain()
    assert in_redis(7, 8) == {7: UserCounter(0, 1, version=1), 8: UserCounter(1, version=1)}
    assert claims(7) == {"user:9"}, "that one is not saved"


def test_a_settle_that_waited_releases_the_claims_of_what_was_saved(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_users(7, 8, 9)
    for user_id in (8, 9):
        assert counters.claim(7, "following_total", 5, f"user:{user_id}")
        react.react(FOLLOW, user(user_id), 7, True)
    first, second = published(plaza)

    def away(*_: object) -> None:
        raise RedisDown("away (a test says so)")

    with monkeypatch.context() as patch:
        patch.setattr(counters, "project_users", away)
        persist.save([first])
    assert claims(7) == {"user:8", "user:9"}
    plaza.queues.drain()
    assert claims(7) == {"user:9"}
    assert in_redis(7)[7] == UserCounter(0, 1, version=1)
    persist.save([second])
    assert claims(7) == set()


def test_when_redis_and_the_queue_are_away_the_batch_comes_again(
    plaza: World, redis_away: Away
) -> None:
    plaza.queues.away = True
    with redis_away(), pytest.raises(QueueDown):
        persist.save([follow(7, 8)])
    plaza.queues.away = False
    counters.read_users([7])
    persist.save([follow(7, 8)])
    assert in_mysql(7, 8) == [(0, 1), (1, 0)]
    assert in_redis(7)[7] == UserCounter(0, 1, version=1)


# ---------------------------------------------------------------- poison


def test_what_can_not_be_a_follow_is_buried_and_its_neighbours_are_saved(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = json.loads(follow(7, 8).to_json())
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
    bodies = [json.dumps(good), *map(json.dumps, bad), "follow", follow(9, 8).to_json()]
    buried: list[object] = []
    monkeypatch.setattr(
        dead_letters, "dead_letter", lambda *args: record_call(buried, args[1]["messageId"], True)
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
        ReactionEvent.from_json,
        persist.save,
    )
    assert response == {"batchItemFailures": []}
    assert buried == [str(n) for n in range(1, len(bodies) - 1)]
    assert set(rows(user(8), FOLLOW)) == {7, 9}
    assert in_mysql(7, 8, 9) == [(0, 1), (2, 0), (0, 1)]


def test_keys_of_follows_that_nobody_wrote_are_no_settlement() -> None:
    for key in (["post", 8, "follow", 7], ["user", 8, "like", 7], ["user", 8, "follow"]):
        with pytest.raises(InvalidMessage):
            Unacknowledged.from_json(json.dumps({"protocol": 2, "commits": [], "keys": [key]}))
    body = '{"protocol":2,"commits":[],"keys":[["user",8,"follow",7]]}'
    assert Unacknowledged.from_json(body).keys == [("user", 8, "follow", 7)]
