"""The consumer of reactions on MariaDB: repeated, reordered and concurrent events count once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pymysql
import pytest

from local.stack.servers import connect_mysql
from plaza.core import counters
from plaza.core.reactions import (
    COLLECT,
    FOLLOW,
    LIKE,
    Target,
    acknowledgement,
    mysql_rows,
    mysql_snapshots,
    persist,
    react,
    redis_commits,
    redis_hydration,
    redis_rankings,
)
from plaza.core.reactions.acknowledgement import PersistedBatch
from plaza.core.reactions.model import MAX_ROWS, Commit, PostLikes, ReactionEvent, ReactionKey
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, FOLLOWS, REACTIONS, Unacknowledged
from plaza.core.reactions.redis_commits import ApplyResult
from plaza.core.reactions.term_guard import Masters
from plaza.core.switches import refresh as switches_refresh
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from tests.support.batches import consume
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
from tests.support.failures import Killed, failing
from tests.support.keyspace import find_keys, redis_us
from tests.support.plaza import World, decode
from tests.support.stores import (
    POST,
    add_users,
    counter,
    gate,
    hydrate,
    insert_rows,
    keys,
    meta,
    outbox,
    put,
    received,
    recent,
    rows,
    total,
    wait_for,
)
from tests.support.unread import turn_off


def log() -> list[tuple[int, int, int]]:
    """Return (actor, version - BASE_US, state) of the log."""
    return [
        (actor, version - BASE_US, state)
        for actor, version, state in mysql.fetch_all(
            "SELECT actor_id, version, state FROM reaction_log ORDER BY actor_id, version"
        )
    ]


# ---------------------------------------------------------------- one batch


def test_a_batch_is_stored_as_rows_log_and_counters(plaza: World) -> None:
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


def test_a_repeated_batch_changes_nothing(plaza: World) -> None:
    plaza.add(POST)
    batch = [make_event(7, at=1), make_event(8, at=2), make_event(7, on=False, at=3)]
    persist.save(batch)
    before = mysql.fetch_all("SELECT * FROM counter, user_counter"), rows(), log()
    persist.save(batch)
    persist.save(batch[::-1] * 2)
    after = mysql.fetch_all("SELECT * FROM counter, user_counter"), rows(), log()
    assert after == before


def test_a_late_event_is_logged_and_changes_nothing_else(plaza: World) -> None:
    plaza.add(POST)
    persist.save([make_event(7, on=False, at=9)])
    persist.save([make_event(7, on=True, at=5)])
    assert rows() == {7: (False, BASE_US + 9)}
    assert counter() == 0
    assert log() == [(7, 5, 1), (7, 9, 0)]


def test_reactions_to_missing_content_are_counted_for_the_target_only(plaza: World) -> None:
    persist.save([make_event(7, at=1)])
    assert (counter(), received()) == (1, 0)


def test_ids_of_63_bits_are_saved_exactly(plaza: World) -> None:
    last_target = Target("review", 2**63 - 1)
    plaza.add(last_target, author_id=2**63 - 1)
    persist.save(
        [make_event(2**63 - 1, target=last_target), make_event(2**63 - 2, target=last_target)]
    )
    assert set(rows(last_target)) == {2**63 - 1, 2**63 - 2}
    assert received(2**63 - 1) == 2


def test_the_version_of_a_counter_is_raised_by_every_changed_row(plaza: World) -> None:
    """An older snapshot must be detected, also when the total is the same."""
    plaza.add(POST)

    def save(*events: ReactionEvent) -> tuple[int, int]:
        persist.save(events)
        [(total, version)] = mysql.fetch_all("SELECT total, version FROM counter")
        return total, version

    assert save(make_event(7, at=1)) == (1, 1)
    assert save(make_event(7, at=1)) == (1, 1), "a duplicate changes no rows"
    assert save(make_event(7, at=3)) == (1, 2)
    assert save(make_event(7, on=False, at=2)) == (1, 2), "a late event changes no rows"
    assert save(make_event(7, on=False, at=4), make_event(8, at=4)) == (1, 3)


def test_each_total_of_a_target_has_its_own_version(plaza: World) -> None:
    """With a shared version Redis would wait for commits of likes that were commits of collects."""
    plaza.add(POST)
    persist.save([make_event(7, at=1)])
    persist.save([make_event(7, at=2, kind=COLLECT), make_event(8, at=2, kind=COLLECT)])
    persist.save([make_event(9, at=3), make_event(9, at=3, kind=COLLECT)])
    assert mysql.fetch_all("SELECT kind, total, version FROM counter ORDER BY kind") == [
        ("collect", 3, 2),
        ("like", 2, 2),
    ]


# ---------------------------------------------------------------- statements


def test_the_number_of_statements_does_not_depend_on_the_batch(plaza: World) -> None:
    posts = [Target("post", n) for n in range(1, 101)]
    plaza.add(*posts)
    keys = [(*target, kind.name) for target in posts for kind in (COLLECT, LIKE)]
    counters.run_in_transaction(lambda cursor: counters.lock_targets(cursor, keys))
    turn_off()
    switches_refresh.read()
    counts = []
    for round_, size in enumerate((10, 100, 1_000)):
        batch = [
            make_event(
                actor=n, at=round_, target=Target("post", n % 100 + 1), kind=(LIKE, COLLECT)[n % 2]
            )
            for n in range(round_ * 10_000 + 1, round_ * 10_000 + size + 1)
        ]
        before = statements()
        persist.save(batch)
        counts.append(statements() - before - 1)
    assert len(set(counts)) == 1, counts
    assert counts[0] <= 11, "nine in a transaction"


# ---------------------------------------------------------------- several transactions


@pytest.fixture
def two_per_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions of two events."""
    monkeypatch.setattr(persist, "EVENTS_PER_TRANSACTION", 2)


def accept_likes(plaza: World, count: int) -> list[ReactionEvent]:
    """Return events of likes by the actors 1 to ``count``, accepted by Redis and not saved."""
    for actor in range(1, count + 1):
        react.react(LIKE, POST, actor, True)
    return [REACTIONS.decode(str(body)) for body in plaza.queues.take("reactions")]


@pytest.mark.usefixtures("two_per_transaction")
def test_a_long_batch_is_saved_in_several_transactions(plaza: World) -> None:
    plaza.add(POST)
    batch = accept_likes(plaza, 5)
    persist.save(batch)
    assert (set(rows()), counter(), received()) == ({1, 2, 3, 4, 5}, 5, 5)
    assert mysql.fetch_all("SELECT version FROM counter") == [(3,)]
    assert (outbox(), recent(), total()) == ({}, [1, 2, 3, 4, 5], 5)
    assert (meta()["db_version"], "blocked" in meta()) == (3, False)
    before = rows(), log(), counter(), meta()
    persist.save(batch[::-1])
    assert (rows(), log(), counter(), meta()) == before


@pytest.mark.usefixtures("two_per_transaction")
def test_events_of_a_target_are_saved_in_one_transaction(plaza: World) -> None:
    """Given events of two posts that arrived in turns."""
    posts = [Target("post", 11), Target("post", 12)]
    plaza.add(*posts)
    persist.save([make_event(actor, target=post) for actor in (7, 8) for post in posts])
    assert mysql.fetch_all("SELECT total, version FROM counter") == [(2, 1)] * 2


@pytest.mark.usefixtures("two_per_transaction")
def test_events_of_one_actor_in_several_transactions_end_with_the_newest(plaza: World) -> None:
    plaza.add(POST)
    hydrate()
    persist.save([make_event(7, on=at % 2 == 1, at=at) for at in (4, 1, 5, 2, 3)])
    assert rows() == {7: (True, BASE_US + 5)}
    assert (counter(), total(), recent()) == (1, 1, [7])
    assert [at for _, at, _ in log()] == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("two_per_transaction")
def test_redis_applies_a_commit_while_the_next_transaction_runs(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a commit whose application waits for the next transaction, and the other way round."""
    plaza.add(POST)
    batch = accept_likes(plaza, 4)
    applying, storing = threading.Event(), threading.Event()
    apply_all, persist_batch = redis_commits.apply_all, persist._persist_batch

    def apply(commits: Sequence[Commit]) -> list[ApplyResult]:
        applying.set()
        if commits[0].db_version == 1:
            assert storing.wait(10)
        return apply_all(commits)

    def store(
        cursor: pymysql.cursors.Cursor,
        events: Sequence[ReactionEvent],
        masters: Masters | None,
        **options: bool,
    ) -> PersistedBatch:
        if events == batch[2:]:
            assert applying.wait(10)
            storing.set()
        return persist_batch(cursor, events, masters, **options)

    monkeypatch.setattr(redis_commits, "apply_all", apply)
    monkeypatch.setattr(persist, "_persist_batch", store)
    persist.save(batch)
    assert (counter(), total(), outbox()) == (4, 4, {})


@pytest.mark.usefixtures("two_per_transaction")
def test_each_transaction_that_redis_misses_is_acknowledged_from_the_queue(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a Redis that is unavailable from the second transaction of a batch on."""
    plaza.add(POST)
    batch = accept_likes(plaza, 6)
    apply_all = redis_commits.apply_all

    def apply(commits: Sequence[Commit]) -> list[ApplyResult]:
        if commits[0].db_version > 1:
            raise RedisDown("unavailable in this test")
        return apply_all(commits)

    with monkeypatch.context() as patch:
        patch.setattr(redis_commits, "apply_all", apply)
        persist.save(batch)
    assert (counter(), meta()["db_version"], set(outbox())) == (6, 1, {3, 4, 5, 6})
    bodies = plaza.queues.take("acknowledgements")
    assert len(bodies) == 2
    persist.acknowledge_again([ACKNOWLEDGEMENTS.decode(str(body)) for body in bodies[::-1]])
    assert (outbox(), total(), meta()["db_version"]) == ({}, 6, 3)


@pytest.mark.usefixtures("two_per_transaction")
def test_a_batch_whose_second_transaction_fails_is_saved_when_it_is_delivered_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    batch = accept_likes(plaza, 5)
    persist_batch = persist._persist_batch

    def store(
        cursor: pymysql.cursors.Cursor,
        events: Sequence[ReactionEvent],
        masters: Masters | None,
        **options: bool,
    ) -> PersistedBatch:
        if events == batch[2:4]:
            raise MysqlDown("unavailable in this test")
        return persist_batch(cursor, events, masters, **options)

    with monkeypatch.context() as patch:
        patch.setattr(persist, "_persist_batch", store)
        with pytest.raises(MysqlDown):
            persist.save(batch)
    assert (counter(), meta()["db_version"], set(outbox())) == (2, 1, {3, 4, 5})
    persist.save(batch)
    assert (counter(), total(), outbox(), meta()["db_version"]) == (5, 5, {}, 3)


# ---------------------------------------------------------------- a message that fails


def test_an_event_that_mysql_refuses_does_not_fail_its_batch(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    save = persist.save

    def save_some(events: Sequence[ReactionEvent]) -> None:
        if any(f.key.actor_id == 666 for f in events):
            mysql.write("SELECT no_such_column FROM reaction")
        save(events)

    bodies = [REACTIONS.encode(make_event(actor, at=actor)) for actor in (1, 2, 666, 3, 4)]
    event = {
        "Records": [
            {
                "messageId": str(n),
                "receiptHandle": str(n),
                "body": str(body),
                "attributes": {"ApproximateReceiveCount": "5", "SentTimestamp": "1"},
            }
            for n, body in enumerate(bodies)
        ]
    }
    monkeypatch.setattr(
        "plaza.infra.queues.processor._back_off", lambda queue, records, *_: records
    )
    response = consume(event, "reactions", REACTIONS.decode, save_some)
    assert response == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    assert set(rows()) == {1, 2, 3, 4}
    assert counter() == 4


# ---------------------------------------------------------------- concurrent consumers


def test_concurrent_consumers_count_the_same_new_keys_once(plaza: World, mysql_url: str) -> None:
    plaza.add(POST)
    batch = [make_event(actor, at=actor) for actor in range(1, 51)]
    save_at_once(lock_counter(mysql_url, POST), batch, batch[::-1])
    assert set(rows()) == set(range(1, 51))
    assert (counter(), received()) == (50, 50)
    assert len(log()) == 50


def test_concurrent_consumers_of_a_like_and_its_unlike_keep_the_newer(
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


def test_consumers_with_opposite_orders_of_targets_do_not_deadlock(
    plaza: World, mysql_url: str
) -> None:
    targets = [Target("post", n) for n in range(1, 11)]
    plaza.add(*targets)
    batches = [
        [
            make_event(actor, at=actor, target=target)
            for target in targets
            for actor in range(b, b + 5)
        ]
        for b in range(1, 61, 5)
    ]
    reversed_batches = [batch[::-1] for batch in batches[::-1]]
    before = deadlocks()
    with ExitStack() as stack:
        consumers = [stack.enter_context(consumer(b)) for b in (batches, reversed_batches)]
        for process in consumers:
            go(process)
        for process in consumers:
            end(process)
    assert deadlocks() == before
    assert [counter(target) for target in targets] == [60] * 10
    assert received() == 600


def test_a_transaction_is_repeated_after_a_deadlock(plaza: World, mysql_url: str) -> None:
    """Given another client that locks two counters in the opposite order."""
    plaza.add(POST)
    attempts = []

    def work(cursor: pymysql.cursors.Cursor) -> int:
        attempts.append(1)
        if len(attempts) < 3:
            raise pymysql.err.OperationalError(1213, "Deadlock found")
        return cursor.execute("SELECT 1")

    assert mysql.run_in_transaction(work) == 1
    assert len(attempts) == 3


# ---------------------------------------------------------------- after the commit


def test_saved_events_are_acknowledged(plaza: World) -> None:
    plaza.add(POST)
    for actor in (1, 2, 3):
        react.react(LIKE, POST, actor, True)
    assert len(outbox()) == 3
    plaza.queues.drain()
    assert outbox() == {}
    assert (total(), meta()["base"], counter()) == (3, 3, 3)


def test_redis_gets_the_committed_version(plaza: World) -> None:
    """With a lower version Redis would take the next commit for a gap."""
    plaza.add(POST)
    hydrate()
    for at in (1, 2, 3):
        persist.save([make_event(7, on=at % 2 == 1, at=at), make_event(8, at=at)])
        [(version,)] = mysql.fetch_all("SELECT version FROM counter")
        assert meta()["db_version"] == version == at
        assert "blocked" not in meta()


def test_two_commits_of_one_transaction_raise_the_version_twice(plaza: World) -> None:
    """Given more actors of a target than one commit has."""
    plaza.add(POST)
    hydrate()
    persist.save([make_event(actor, at=actor) for actor in range(1, MAX_ROWS + 2)])
    for at in (1, 2):
        [(version,)] = mysql.fetch_all("SELECT version FROM counter")
        assert (meta()["db_version"], "blocked" in meta()) == (version, False)
        assert (version, total()) == (at + 1, MAX_ROWS + at)
        persist.save([make_event(1000 + at, at=1000 + at)])


def test_versions_of_a_new_epoch_are_above_those_of_the_last(plaza: World) -> None:
    """Given a MySQL that was restored to an earlier moment and repeats versions of counters."""
    plaza.add(POST)
    hydrate()
    for at in range(1, 6):
        persist.save([make_event(7, on=at % 2 == 1, at=at)])
    assert meta()["db_version"] == 5
    mysql.write("UPDATE counter SET version = 2, total = 0 WHERE kind = 'like'")
    mysql.write("DELETE FROM reaction")
    mysql.write("UPDATE log_barrier SET epoch = epoch + 1")
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
        mysql.write("UPDATE log_barrier SET epoch = 0")


def test_all_reads_have_the_epoch_in_their_versions(plaza: World) -> None:
    persist.save([make_event(7, at=1)])
    mysql.write("UPDATE log_barrier SET epoch = 1")
    try:
        [(_, of_counter)] = mysql_snapshots.read_counters([(LIKE, POST)])
        _, of_state = mysql_rows.read_state(LIKE, POST, 7)
        of_earliest, _ = mysql_rows.read_earliest(LIKE, POST, 5)
        [snapshot] = mysql_snapshots.read_snapshots([(LIKE, POST, [])], 5)
        [(_, of_missing)] = mysql_snapshots.read_counters([(LIKE, Target("post", 12))])
    finally:
        mysql.write("UPDATE log_barrier SET epoch = 0")
    assert {of_counter, of_state, of_earliest, snapshot.db_version} == {2**40 + 1}
    assert of_missing == 2**40


def test_the_log_has_the_change_of_each_event_and_the_version_of_its_commit(plaza: World) -> None:
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
        f"SELECT actor_id, version - {BASE_US}, change_by, db_version"
        " FROM reaction_log ORDER BY 1, 2"
    ) == [
        (7, 1, 1, 1),
        (7, 2, -1, 1),
        (7, 3, 1, 1),
        (7, 5, 0, 2),
        (8, 3, 1, 1),
        (8, 4, 0, 2),
        (8, 5, -1, 2),
    ]


def test_the_newest_row_of_the_log_has_the_total_after_its_commit(plaza: World) -> None:
    comment = Target("comment", 21)
    persist.save([make_event(actor, at=1) for actor in range(1, 301)])  # two commits
    persist.save([make_event(7, on=False, at=2), make_event(8, at=2, target=comment)])
    persist.save([make_event(7, at=1)])  # logged before, and keeps its total
    persist.save([make_event(9, on=False, at=0)])  # older than its row: changes nothing
    rows_of_log = mysql.fetch_all(
        "SELECT target_type, db_version, MIN(total), MAX(total), COUNT(*) FROM reaction_log"
        " GROUP BY target_type, db_version ORDER BY target_type, db_version"
    )
    assert rows_of_log == [
        ("comment", 1, 1, 1, 1),
        ("post", 1, 250, 250, 250),
        ("post", 2, 300, 300, 50),
        ("post", 3, 299, 299, 2),
    ]
    assert counter() == 299


def test_a_repeated_old_event_acknowledges_the_present_state(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    [like] = plaza.queues.take("reactions")
    react.react(LIKE, POST, 1, False)
    plaza.queues.drain()
    persist.save([REACTIONS.decode(str(like))])
    assert rows()[1][0] is False
    assert (total(), recent(), counter()) == (0, [], 0)


def test_a_redelivered_batch_applies_the_commit_that_redis_missed(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer was killed between its commit and the update of Redis."""
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    batch = [REACTIONS.decode(str(body)) for body in plaza.queues.take("reactions")]

    with monkeypatch.context() as patch:
        patch.setattr(persist, "acknowledge", failing(Killed))
        with pytest.raises(Killed):
            persist.save(batch)
    assert (counter(), set(outbox()), meta()["db_version"]) == (1, {1}, 0)
    persist.save(batch)
    redis.execute("HSET", keys().meta, "blocked", redis_us() - 2_000_000)
    persist.save(batch)
    assert (outbox(), recent(), total(), meta()["db_version"]) == ({}, [1], 1, 1)


def test_queued_commits_are_applied_in_any_order(plaza: World) -> None:
    plaza.add(POST)
    hydrate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(persist, "acknowledge", raise_redis_down)
        for at in (1, 2, 3):
            persist.save([make_event(7, on=at % 2 == 1, at=at), make_event(8, at=at)])
    assert (counter(), meta()["db_version"]) == (2, 0)
    bodies = plaza.queues.take("acknowledgements")
    assert len(bodies) == 3
    for body in [*bodies[::-1], *bodies]:
        persist.acknowledge_again([ACKNOWLEDGEMENTS.decode(str(body))])
    assert (recent(), total(), meta()["db_version"]) == ([7, 8], 2, 3)
    assert "blocked" not in meta()


raise_redis_down = failing(RedisDown("unavailable in this test"))


def test_acknowledging_keys_again_applies_the_present_rows(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    bodies = plaza.queues.take("reactions")
    key = REACTIONS.decode(str(bodies[0])).key
    persist.acknowledge_again([Unacknowledged(keys=[key])])
    assert set(outbox()) == {1}, "not saved yet"
    persist.save([REACTIONS.decode(str(bodies[0]))])
    persist.acknowledge_again([Unacknowledged(keys=[key]), Unacknowledged(keys=[key, key])])
    assert outbox() == {}
    assert total() == 1


def test_present_rows_are_as_of_the_version_of_their_counter(plaza: World, mysql_url: str) -> None:
    """Given an unlike that is saved while the counter is waited for."""
    persist.save([make_event(7, at=1)])
    key = ReactionKey(*POST, "like", 7)

    def read_current() -> PersistedBatch:
        return mysql.run_in_transaction(
            lambda cursor: persist._read_current(cursor, keys=[key], masters=None)
        )

    with (
        connect_mysql(mysql_url) as other,
        other.cursor() as of_other,
        ThreadPoolExecutor() as pool,
    ):
        other.begin()
        of_other.execute("UPDATE counter SET total = 0, version = 2 WHERE kind = 'like'")
        reading = pool.submit(read_current)
        with connect_mysql(mysql_url) as third, third.cursor() as of_third:
            wait_for(lambda: count_lock_waits(of_third) == 1, "the counter is waited for")
        of_other.execute("UPDATE reaction SET state = 0, version = version + 1")
        other.commit()
        result = reading.result()
    assert result.commits == [Commit(LIKE, POST, 2, 0, False, [(7, BASE_US + 2, False)])]


def count_lock_waits(cursor: pymysql.cursors.Cursor) -> int:
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
    [(_, count)] = cursor.fetchall()
    return int(count)


def test_a_commit_of_a_target_without_readers_does_not_load_it(plaza: World) -> None:
    plaza.add(POST)
    persist.save([make_event(7, at=1)])
    assert find_keys("*:meta") == []
    acknowledgement.resync([(LIKE, POST, 1)])
    assert find_keys("*:meta") == []


def test_a_resync_needs_redis_only(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: Exception) -> None:
        monkeypatch.setattr(acknowledgement, "hydrate", failing(error))
        acknowledgement.resync([], [(LIKE, POST)])

    fail(MysqlDown("unavailable"))
    with pytest.raises(RedisDown):
        fail(RedisDown("unavailable"))


def test_a_batch_is_not_saved_again_because_mysql_fails_after_its_commit(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    counters.read_users([99])

    monkeypatch.setattr(counters, "refresh_projections", failing(MysqlDown("unavailable")))
    persist.save([make_event(7, at=1)])
    [message] = plaza.queues.take(ACKNOWLEDGEMENTS)
    assert decode(ACKNOWLEDGEMENTS, message).commits[0].rows == [(7, BASE_US + 1, True)]


def test_only_likes_of_posts_are_ranked(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ranked: list[PostLikes] = []
    monkeypatch.setattr(redis_rankings, "project_likes", ranked.extend)
    comment = Target("comment", 21)
    persist.save(
        [
            make_event(7, at=1),
            make_event(7, at=2, kind=COLLECT),
            make_event(7, at=3, target=comment),
        ]
    )
    assert ranked == [PostLikes(POST.id, 1, 1)]


def test_a_repeated_event_keeps_its_entry_in_the_log(plaza: World) -> None:
    for _ in range(2):
        persist.save([make_event(7, at=1)])
    rows_of_log = mysql.fetch_all("SELECT change_by, db_version, total FROM reaction_log")
    assert rows_of_log == [(1, 1, 1)]


def test_actors_that_are_off_count_for_versions_only(plaza: World) -> None:
    insert_rows([(POST, 1, 1, 10), (POST, 2, 0, BASE_US)])
    hydrate()
    assert (meta()["version"], recent()) == (BASE_US, [1])
    expected = [(LIKE, POST)]
    states = [mysql_rows.read_viewer_states(expected, actor) for actor in (1, 2, 3)]
    assert states == [[True], [False], [False]]


def test_a_row_that_is_read_again_confirms_its_entry(plaza: World) -> None:
    put(n=1)
    insert_rows([(POST, 7, 1, gate(7).version_us)])
    persist.acknowledge_again([Unacknowledged(keys=[ReactionKey(*POST, "like", 7)])])
    assert outbox() == {}


def test_a_commit_of_a_target_that_redis_dropped_with_an_outbox_loads_it(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    redis_hydration.evict_all([(LIKE, POST, None)])
    plaza.queues.drain()
    assert (outbox(), recent(), total()) == ({}, [7], 1)


def test_all_follows_and_unfollows_of_a_batch_are_published(plaza: World) -> None:
    add_users(7, 8, 11)
    user = Target("user", 11)
    for _ in range(2):
        persist.save(
            [
                make_event(7, at=1, kind=FOLLOW, target=user),
                make_event(8, on=False, at=2, kind=FOLLOW, target=user),
            ]
        )
        assert [decode(FOLLOWS, body) for body in plaza.queues.take(FOLLOWS)] == [
            [(7, 11), (8, 11)]
        ]
