"""The consumer on a real MariaDB: once, whatever is repeated, reordered or done at one time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pymysql
import pytest

from plaza import counters
from plaza.infra import mysql, redis
from plaza.infra.consumer import consume
from plaza.infra.redis import RedisDown
from plaza.reactions import COLLECT, LIKE, Target, persist, react, redis_hydration
from plaza.reactions.model import ReactionEvent
from plaza.reactions.queues import Unacknowledged
from tests.support.consumers import (
    BASE_US,
    consumer,
    deadlocks,
    end,
    go,
    lock_counter,
    make_event,
    save_at_once,
    statements,
)
from tests.support.keyspace import redis_us
from tests.support.plaza import World
from tests.support.stores import (
    POST,
    counter,
    hydrate,
    keys,
    meta,
    outbox,
    received,
    recent,
    rows,
    total,
)


def log() -> list[tuple[int, int, int]]:
    """(actor, version - BASE_US, state) of the log."""
    return [
        (actor, version - BASE_US, state)
        for actor, version, state in mysql.fetch_all(
            "SELECT actor_id, version, state FROM reaction_log ORDER BY actor_id, version"
        )
    ]


# ---------------------------------------------------------------- one batch


def test_a_batch_becomes_rows_log_and_counters(plaza: World) -> None:
    comment = Target("comment", 21)
    plaza.add(POST, comment, author_id=99)
    persist.save(
        [
            make_event(7, at=1),
            make_event(8, at=2),
            make_event(8, on=False, at=3),
            make_event(7, at=4, target=comment),
            make_event(7, at=5, kind=COLLECT),
        ]
    )
    assert rows() == {7: (True, BASE_US + 1), 8: (False, BASE_US + 3)}
    assert log() == [(7, 1, 1), (7, 4, 1), (7, 5, 1), (8, 2, 1), (8, 3, 0)]
    assert (counter(), counter(comment), counter(kind=COLLECT)) == (1, 1, 1)
    assert (received(), received(kind=COLLECT)) == (2, 1)


def test_the_same_batch_again_changes_nothing(plaza: World) -> None:
    plaza.add(POST)
    batch = [make_event(7, at=1), make_event(8, at=2), make_event(7, on=False, at=3)]
    persist.save(batch)
    before = mysql.fetch_all("SELECT * FROM content_counter, user_counter"), rows(), log()
    persist.save(batch)
    persist.save(batch[::-1] * 2)
    after = mysql.fetch_all("SELECT * FROM content_counter, user_counter"), rows(), log()
    assert after == before


def test_a_late_fact_is_logged_and_changes_nothing_else(plaza: World) -> None:
    plaza.add(POST)
    persist.save([make_event(7, on=False, at=9)])
    persist.save([make_event(7, on=True, at=5)])
    assert rows() == {7: (False, BASE_US + 9)}
    assert counter() == 0
    assert log() == [(7, 5, 1), (7, 9, 0)]


def test_reactions_to_content_that_nobody_wrote_are_counted_for_the_content(plaza: World) -> None:
    persist.save([make_event(7, at=1)])
    assert (counter(), received()) == (1, 0)


def test_ids_at_the_end_of_63_bits_are_saved_exactly(plaza: World) -> None:
    far = Target("review", 2**63 - 1)
    plaza.add(far, author_id=2**63 - 1)
    persist.save([make_event(2**63 - 1, target=far), make_event(2**63 - 2, target=far)])
    assert set(rows(far)) == {2**63 - 1, 2**63 - 2}
    assert received(2**63 - 1) == 2


def test_the_version_of_a_counter_moves_with_every_row_that_changed(plaza: World) -> None:
    """Whoever read before must find out, also when the total is what it was."""
    plaza.add(POST)

    def save(*facts: ReactionEvent) -> tuple[int, int]:
        persist.save(facts)
        [(total, version)] = mysql.fetch_all("SELECT like_total, like_version FROM content_counter")
        return total, version

    assert save(make_event(7, at=1)) == (1, 1)
    assert save(make_event(7, at=1)) == (1, 1), "a duplicate changes no row"
    assert save(make_event(7, at=3)) == (1, 2)
    assert save(make_event(7, on=False, at=2)) == (1, 2), "nor does one that is late"
    assert save(make_event(7, on=False, at=4), make_event(8, at=4)) == (1, 3)


def test_each_total_of_a_target_has_a_version_of_its_own(plaza: World) -> None:
    """A commit of collects is none of likes: Redis would wait for a version that never comes."""
    plaza.add(POST)
    persist.save([make_event(7, at=1)])
    persist.save([make_event(7, at=2, kind=COLLECT), make_event(8, at=2, kind=COLLECT)])
    persist.save([make_event(9, at=3), make_event(9, at=3, kind=COLLECT)])
    assert mysql.fetch_all(
        "SELECT like_total, like_version, collect_total, collect_version, comment_version, follow_version"
        " FROM content_counter"
    ) == [(2, 2, 3, 2, 0, 0)]


# ---------------------------------------------------------------- a fixed number of statements


def test_a_batch_takes_the_same_number_of_statements_whatever_it_holds(plaza: World) -> None:
    posts = [Target("post", n) for n in range(1, 101)]
    plaza.add(*posts)
    mysql.run_in_transaction(lambda cursor: counters.lock_content(cursor, posts))
    taken = []
    for round_, size in enumerate((10, 100, 1_000)):
        batch = [
            make_event(
                actor=n, at=round_, target=Target("post", n % 100 + 1), kind=(LIKE, COLLECT)[n % 2]
            )
            for n in range(round_ * 10_000 + 1, round_ * 10_000 + size + 1)
        ]
        before = statements()
        persist.save(batch)
        taken.append(statements() - before - 1)
    assert len(set(taken)) == 1, taken
    assert taken[0] <= 11, "nine in a transaction"


# ---------------------------------------------------------------- a poison among good ones


def test_a_fact_that_mysql_will_not_take_does_not_hold_up_its_neighbours(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    save = persist.save

    def picky(facts: Sequence[ReactionEvent]) -> None:
        if any(f.key.actor_id == 666 for f in facts):
            mysql.write("SELECT no_such_column FROM reaction")
        save(facts)

    bodies = [make_event(actor, at=actor).to_json() for actor in (1, 2, 666, 3, 4)]
    event = {
        "Records": [
            {
                "messageId": str(n),
                "receiptHandle": str(n),
                "body": body,
                "attributes": {"ApproximateReceiveCount": "5", "SentTimestamp": "1"},
            }
            for n, body in enumerate(bodies)
        ]
    }
    monkeypatch.setattr("plaza.infra.consumer._back_off", lambda queue, records, *_: records)
    response = consume(event, "reactions", ReactionEvent.from_json, picky)
    assert response == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    assert set(rows()) == {1, 2, 3, 4}
    assert counter() == 4


# ---------------------------------------------------------------- at the same time


def test_two_consumers_with_the_same_new_keys_count_them_once(plaza: World, mysql_url: str) -> None:
    plaza.add(POST)
    batch = [make_event(actor, at=actor) for actor in range(1, 51)]
    save_at_once(lock_counter(mysql_url, POST), batch, batch[::-1])
    assert set(rows()) == set(range(1, 51))
    assert (counter(), received()) == (50, 50)
    assert len(log()) == 50


def test_two_consumers_with_a_like_and_its_unlike_end_with_the_newer(
    plaza: World, mysql_url: str
) -> None:
    plaza.add(POST)
    likes = [make_event(actor, True, at=1) for actor in range(1, 21)]
    unlikes = [make_event(actor, False, at=2) for actor in range(1, 21)]
    before = deadlocks()
    save_at_once(lock_counter(mysql_url, POST), likes, unlikes)
    assert deadlocks() == before
    assert set(rows().values()) == {(False, BASE_US + 2)}
    assert (counter(), received()) == (0, 0)


def test_consumers_that_meet_in_opposite_orders_do_not_lock_each_other_out(
    plaza: World, mysql_url: str
) -> None:
    targets = [Target("post", n) for n in range(1, 11)]
    plaza.add(*targets)
    there = [
        [
            make_event(actor, at=actor, target=target)
            for target in targets
            for actor in range(b, b + 5)
        ]
        for b in range(1, 61, 5)
    ]
    back = [batch[::-1] for batch in there[::-1]]
    before = deadlocks()
    with ExitStack() as stack:
        both = [stack.enter_context(consumer(batches)) for batches in (there, back)]
        for one in both:
            go(one)
        for one in both:
            end(one)
    assert deadlocks() == before
    assert [counter(target) for target in targets] == [60] * 10
    assert received() == 600


def test_a_deadlock_with_somebody_else_is_tried_again(plaza: World, mysql_url: str) -> None:
    """A statement by hand that takes two counters the wrong way round."""
    plaza.add(POST)
    tries = []

    def work(cursor: pymysql.cursors.Cursor) -> int:
        tries.append(1)
        if len(tries) < 3:
            raise pymysql.err.OperationalError(1213, "Deadlock found")
        return cursor.execute("SELECT 1")

    assert mysql.run_in_transaction(work) == 1
    assert len(tries) == 3


# ---------------------------------------------------------------- after the commit


def test_what_is_saved_is_settled(plaza: World) -> None:
    plaza.add(POST)
    for actor in (1, 2, 3):
        react.react(LIKE, POST, actor, True)
    assert len(outbox()) == 3
    plaza.queues.drain()
    assert outbox() == {}
    assert (total(), meta()["base"], counter()) == (3, 3, 3)


def test_redis_is_told_the_version_that_was_committed(plaza: World) -> None:
    """One less, and the next commit would be missed."""
    plaza.add(POST)
    hydrate()
    for at in (1, 2, 3):
        persist.save([make_event(7, on=at % 2 == 1, at=at), make_event(8, at=at)])
        [(version,)] = mysql.fetch_all("SELECT like_version FROM content_counter")
        assert meta()["db_version"] == version == at
        assert "blocked" not in meta()


def test_versions_of_a_new_epoch_are_above_all_of_the_one_before(plaza: World) -> None:
    """MySQL was restored to an earlier moment: versions that Redis has seen come again."""
    plaza.add(POST)
    hydrate()
    for at in range(1, 6):
        persist.save([make_event(7, on=at % 2 == 1, at=at)])
    assert meta()["db_version"] == 5
    mysql.write("UPDATE content_counter SET like_version = 2, like_total = 0")
    mysql.write("DELETE FROM reaction")
    mysql.write("UPDATE log_gate SET epoch = epoch + 1")
    try:
        redis_hydration.evict_all([(LIKE, POST, None)])
        hydrate()
        persist.save([make_event(8, at=9)])
        assert meta()["db_version"] == 2**40 + 3
        assert (total(), recent()) == (1, [8])
        assert mysql.fetch_all("SELECT db_version FROM reaction_log WHERE actor_id = 8") == [
            (2**40 + 3,)
        ]
    finally:
        mysql.write("UPDATE log_gate SET epoch = 0")


def test_the_log_has_what_each_event_changed_and_the_version_of_its_commit(plaza: World) -> None:
    plaza.add(POST)
    persist.save(
        [
            make_event(7, at=1),
            make_event(7, on=False, at=2),
            make_event(7, at=3),
            make_event(8, at=3),
        ]
    )
    persist.save([make_event(7, at=5), make_event(8, on=False, at=5)])
    persist.save([make_event(8, on=True, at=4)])
    assert mysql.fetch_all(
        f"SELECT actor_id, version - {BASE_US}, change_by, db_version FROM reaction_log ORDER BY 1, 2"
    ) == [
        (7, 1, 1, 1),
        (7, 2, -1, 1),
        (7, 3, 1, 1),
        (7, 5, 0, 2),
        (8, 3, 1, 1),
        (8, 4, 0, 2),
        (8, 5, -1, 2),
    ]


def test_an_old_event_that_is_saved_again_tells_the_state_of_now(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    [like] = plaza.queues.take("reactions")
    react.react(LIKE, POST, 1, False)
    plaza.queues.drain()
    persist.save([ReactionEvent.from_json(like)])
    assert rows()[1][0] is False
    assert (total(), recent(), counter()) == (0, [], 0)


def test_a_commit_that_redis_was_not_told_is_told_by_its_batch_when_it_comes_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer died between its commit and Redis; the queue delivers again."""
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    batch = [ReactionEvent.from_json(body) for body in plaza.queues.take("reactions")]

    class Killed(BaseException):
        pass

    def die(_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(persist, "acknowledge", die)
        with pytest.raises(Killed):
            persist.save(batch)
    assert (counter(), set(outbox()), meta()["db_version"]) == (1, {1}, 0)
    persist.save(batch)
    redis.execute("HSET", keys().meta, "blocked", redis_us() - 2_000_000)
    persist.save(batch)
    assert (outbox(), recent(), total(), meta()["db_version"]) == ({}, [1], 1, 1)


def test_commits_that_waited_for_redis_are_applied_as_they_were(plaza: World) -> None:
    plaza.add(POST)
    hydrate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(persist, "acknowledge", raise_redis_down)
        for at in (1, 2, 3):
            persist.save([make_event(7, on=at % 2 == 1, at=at), make_event(8, at=at)])
    assert (counter(), meta()["db_version"]) == (2, 0)
    waiting = plaza.queues.take("acknowledgements")
    assert len(waiting) == 3
    for body in [*waiting[::-1], *waiting]:
        persist.acknowledge_again([Unacknowledged.from_json(body)])
    assert (recent(), total(), meta()["db_version"]) == ([7, 8], 2, 3)
    assert "blocked" not in meta()


def raise_redis_down(_: object) -> None:
    raise RedisDown("away (a test says so)")


def test_settling_again_tells_what_mysql_has_by_then(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    bodies = plaza.queues.take("reactions")
    key = ReactionEvent.from_json(bodies[0]).key
    persist.acknowledge_again([Unacknowledged(keys=[key])])
    assert set(outbox()) == {1}, "not saved yet: it stays"
    persist.save([ReactionEvent.from_json(bodies[0])])
    persist.acknowledge_again([Unacknowledged(keys=[key]), Unacknowledged(keys=[key, key])])
    assert outbox() == {}
    assert total() == 1
