"""The roll-up on a real MariaDB: each event counts once, under races and crashes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from pymysql.cursors import Cursor

from local.stack.servers import connect_mysql
from plaza.core.counters import mysql_store
from plaza.core.reactions import COLLECT, Target, mysql_log, persist, term_guard
from plaza.core.reactions.model import ReactionEvent
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.social.recommendations import like_roll_up, mysql_roll_up
from tests.support.consumers import consumer, deadlocks, end, go, statements
from tests.support.likes_log import (
    HOUR_US,
    NOW_US,
    add_reviews,
    early_in_an_hour,
    find_wrong_changes,
    hours,
    hours_in_log,
    like,
    post,
    review,
    review_likes,
    totals,
)
from tests.support.plaza import World
from tests.support.stores import wait_for

MS_US = 1_000


def watermark() -> int:
    rows = mysql.fetch_all("SELECT seq FROM watermark WHERE name = 'likes'")
    return rows[0][0] if rows else 0


def stale() -> dict[int, int]:
    return dict(mysql.fetch_all("SELECT shop_id, seq FROM stale_list"))


def seqs() -> list[int]:
    return [seq for (seq,) in mysql.fetch_all("SELECT seq FROM reaction_log ORDER BY seq")]


def small_pages(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(like_roll_up, "ROWS_PER_PAGE", size)


# ---------------------------------------------------------------- one run


def test_a_roll_up_updates_likes_and_marks_shops_stale(plaza: World) -> None:
    add_reviews(5, 51, 52)
    add_reviews(6, 61)
    plaza.add(Target("comment", 1), post(1))
    persist.save(
        [
            like(review(51), 1),
            like(review(51), 2),
            like(review(52), 3),
            like(review(52), 3, on=False, at=1),
            like(Target("comment", 1), 1),
            like(post(1), 1, kind=COLLECT),
        ]
    )
    like_roll_up.roll_up_likes()
    assert review_likes() == {51: 2, 52: 0, 61: 0}
    assert stale().keys() == {5}
    assert stale()[5] in seqs()
    assert hours() == {}
    assert watermark() == seqs()[-1]


def test_an_hour_of_a_post_is_likes_minus_unlikes(plaza: World) -> None:
    plaza.add(post(1), post(2))
    hour = NOW_US // HOUR_US
    begin = hour * HOUR_US - NOW_US
    persist.save(
        [
            like(post(1), 1, at=begin - 1),
            like(post(1), 2, at=begin),
            like(post(1), 3, at=begin),
            like(post(1), 1, on=False, at=begin + 5),
            like(post(1), 4, kind=COLLECT),
            like(post(2), 4, at=begin - HOUR_US),
        ]
    )
    like_roll_up.roll_up_likes()
    assert hours() == {(hour - 1, 1): 1, (hour, 1): 1, (hour - 1, 2): 1}


def test_repeated_likes_of_one_actor_count_once(plaza: World) -> None:
    """Given provisional events: without Redis each request becomes one, also a repeated like."""
    plaza.add(post(1))
    persist.save([like(post(1), 1, at=n * MS_US, provisional=True) for n in range(20)])
    persist.save([like(post(1), 2, at=n) for n in range(2)])
    persist.save([like(post(1), 3, on=False, provisional=True)])
    like_roll_up.roll_up_likes()
    assert sum(hours().values()) == 2
    persist.save([like(post(1), 1, at=n * MS_US, provisional=True) for n in range(20, 25)])
    persist.save([like(post(1), 1, on=False, at=30 * MS_US, provisional=True)])
    like_roll_up.roll_up_likes()
    assert sum(hours().values()) == 1


def test_a_late_like_before_its_unlike_changes_no_hour(plaza: World) -> None:
    plaza.add(post(1))
    persist.save([like(post(1), 1, on=False, at=9)])
    like_roll_up.roll_up_likes()
    assert hours() == {}
    persist.save([like(post(1), 1, on=True, at=-HOUR_US)])
    like_roll_up.roll_up_likes()
    assert hours() == hours_in_log() == {}


def test_a_run_without_new_events_changes_nothing(plaza: World) -> None:
    add_reviews(5, 51)
    assert like_roll_up.roll_up_likes() == 0
    persist.save([like(review(51), 1)])
    assert like_roll_up.roll_up_likes() == watermark()
    mysql.write("DELETE FROM stale_list")
    mysql.write("UPDATE content SET likes = 77")
    like_roll_up.roll_up_likes()
    assert (review_likes(), stale()) == ({51: 77}, {}), (
        "events below the watermark are not read again"
    )


def test_old_hours_are_deleted_and_late_events_do_not_restore_them(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(post(1))
    monkeypatch.setattr(like_roll_up, "_ROWS_PER_DELETE", 2)
    hour = early_in_an_hour()
    begin = hour * HOUR_US - NOW_US
    mysql.write(
        "INSERT INTO post_hour (hour, post_id, net) VALUES "
        + ",".join(f"({hour - like_roll_up.RETENTION_HOURS - n}, {n}, 1)" for n in range(6))
    )
    persist.save([like(post(1), n, at=begin - days * 24 * HOUR_US) for n, days in ((1, 9), (2, 7))])
    like_roll_up.roll_up_likes()
    assert hours() == {(hour - like_roll_up.RETENTION_HOURS, 0): 1, (hour - 168, 1): 1}


def test_a_run_stops_when_its_time_is_over_and_the_next_continues(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(5, 51)
    persist.save([like(review(51), actor) for actor in range(10)])
    small_pages(monkeypatch, 4)
    monkeypatch.setattr(like_roll_up, "MAX_RUN_S", 0)
    ends = [like_roll_up.roll_up_likes() for _ in range(3)]
    assert ends[0] < ends[1] < ends[2] or ends[2] == seqs()[-1]
    monkeypatch.setattr(like_roll_up, "MAX_RUN_S", 60)
    assert like_roll_up.roll_up_likes() == seqs()[-1]
    assert review_likes() == {51: 10}


def test_a_page_of_any_size_takes_the_same_number_of_statements(plaza: World) -> None:
    add_reviews(5, *range(1, 101))
    plaza.add(*map(post, range(1, 101)))
    costs = []
    for round_, size in enumerate((10, 100, 1_000)):
        persist.save(
            [like((review, post)[n % 2](n % 100 + 1), round_ * 10_000 + n + 1) for n in range(size)]
        )
        before = statements()
        like_roll_up.roll_up_likes()
        costs.append(statements() - before - 1)
    assert len(set(costs)) == 1, costs
    assert costs[0] <= 15, "head 1, the gate 4, a page 9, old hours 1"


def test_a_page_of_the_log_is_read_by_index(plaza: World) -> None:
    add_reviews(5, *range(1, 21))
    plaza.add(*map(post, range(1, 21)))
    for begin in range(0, 20_000, 1_000):
        persist.save([like((review, post)[n % 2](n % 20 + 1), begin + n + 1) for n in range(1_000)])
    like_roll_up.roll_up_likes()
    persist.save([like(review(1), 50_000), like(post(1), 50_000)])

    def rows_read() -> int:
        rows = mysql.fetch_all("SHOW SESSION STATUS LIKE 'Handler_read%%'", ())
        return sum(int(count) for name, count in rows if not name.endswith("deleted"))

    before = rows_read()
    like_roll_up.roll_up_likes()
    assert rows_read() - before < 200


# ---------------------------------------------------------------- the order of commits


@contextmanager
def open_transaction(mysql_url: str) -> Iterator[Cursor]:
    """Open a transaction on another connection, as a consumer or another run does."""
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        other.begin()
        yield cursor
        other.rollback()


def commit(cursor: Cursor) -> None:
    cursor.connection.commit()


def fail_instead_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a roll-up fail instead of waiting for writers."""
    monkeypatch.setattr(mysql_log, "LOCK_TIMEOUT_S", 0)


def save_uncommitted(cursor: Cursor, events: Sequence[ReactionEvent]) -> None:
    """Store events as a consumer does, without the commit."""
    keys = sorted({event.key[:3] for event in events})
    mysql_store.run_in_transaction(lambda other: mysql_store.lock_targets(other, keys))
    persist._persist_batch(cursor, events, term_guard.read_masters())
    mysql.flush(cursor)


@pytest.mark.parametrize("gated", [True, False], ids=["with the gate", "without it"])
def test_an_event_that_commits_after_a_higher_seq_is_not_skipped(
    plaza: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch, gated: bool
) -> None:
    """An event gets its seq when it is inserted, and is visible when it is committed."""
    add_reviews(5, 51, 52)
    if not gated:
        monkeypatch.setattr(mysql_log, "SHARE_LOG_LOCK", "SELECT 0, NULL, NULL")
    with open_transaction(mysql_url) as slow:
        save_uncommitted(slow, [like(review(51), 1)])  # the lower seq, not committed
        persist.save([like(review(52), 1)])  # the higher seq, committed
        fail_instead_of_waiting(monkeypatch)
        if gated:
            with pytest.raises(MysqlDown):
                like_roll_up.roll_up_likes()
            assert watermark() == 0, "the run fails instead of skipping the event"
        else:
            like_roll_up.roll_up_likes()
        commit(slow)
    like_roll_up.roll_up_likes()
    assert totals() == {51: 1, 52: 1}
    assert review_likes() == (totals() if gated else {51: 0, 52: 1})


def test_a_roll_up_waits_for_open_appends_only(plaza: World, mysql_url: str) -> None:
    add_reviews(5, 51, 52, 53)
    with open_transaction(mysql_url) as slow, ThreadPoolExecutor() as pool:
        save_uncommitted(slow, [like(review(51), 1)])
        persist.save([like(review(52), 1)])
        roll_up = pool.submit(like_roll_up.roll_up_likes)
        with open_transaction(mysql_url) as other:
            wait_for(lambda: lock_waits(other) == 1, "the roll-up waits for the slow append")
        assert not roll_up.done()
        commit(slow)
        roll_up.result(timeout=20)
    assert review_likes() == {51: 1, 52: 1, 53: 0}


def lock_waits(cursor: Cursor) -> int:
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
    [(_, count)] = cursor.fetchall()
    return int(count)


def test_an_event_appended_during_a_roll_up_is_for_the_next_one(
    plaza: World, mysql_url: str
) -> None:
    add_reviews(5, 51, 52)
    persist.save([like(review(51), 1)])
    head = mysql_log.read_log_head()
    mysql_log.wait_for_log_writers()
    with open_transaction(mysql_url) as late:
        save_uncommitted(late, [like(review(52), 1)])
        assert mysql_roll_up.roll_up_page(head, 100, 0).end == head
        commit(late)
    assert mysql_roll_up.roll_up_page(head, 100, 0).end == head
    assert review_likes() == {51: 1, 52: 0}
    like_roll_up.roll_up_likes()
    assert review_likes() == {51: 1, 52: 1}


def test_a_rolled_back_append_leaves_only_a_gap(plaza: World, mysql_url: str) -> None:
    add_reviews(5, 51)
    with open_transaction(mysql_url) as failed:
        save_uncommitted(failed, [like(review(51), actor) for actor in range(1, 51)])
    persist.save([like(review(51), 1), like(review(51), 2)])
    like_roll_up.roll_up_likes()
    assert review_likes() == {51: 2}


# ---------------------------------------------------------------- overlapping and failing runs


@pytest.mark.parametrize("first", ["commits", "fails"])
def test_concurrent_runs_roll_up_each_event_once(plaza: World, mysql_url: str, first: str) -> None:
    add_reviews(5, 51)
    plaza.add(post(1))
    persist.save([like(t, actor) for t in (review(51), post(1)) for actor in range(1, 11)])
    head = mysql_log.read_log_head()
    with open_transaction(mysql_url) as item, ThreadPoolExecutor() as pool:
        one_rolled = mysql_roll_up._roll_up_page(item, head, 10, 0)
        other = pool.submit(like_roll_up.roll_up_likes)
        with open_transaction(mysql_url) as observer:
            wait_for(lambda: lock_waits(observer) == 1, "the second run waits for the first")
        commit(item) if first == "commits" else item.connection.rollback()
        assert other.result(timeout=20) == head
    assert one_rolled.end < head
    assert (review_likes(), sum(hours().values())) == ({51: 10}, 10)
    assert hours() == hours_in_log()
    assert watermark() == head


def test_a_run_behind_the_watermark_changes_nothing(plaza: World) -> None:
    add_reviews(5, 51)
    plaza.add(post(1))
    persist.save([like(post(1), 1)])
    late_head = mysql_log.read_log_head()
    persist.save([like(post(1), 2), like(review(51), 2)])
    end_seq = like_roll_up.roll_up_likes()
    assert mysql_roll_up.roll_up_page(late_head, 100, 0) == (end_seq, end_seq)
    assert watermark() == end_seq
    assert hours() == hours_in_log()


class Killed(Exception):
    """The process ends here."""


@pytest.mark.parametrize("step", range(1, 9))
def test_a_crash_after_any_statement_leaves_no_partial_page(
    plaza: World, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    add_reviews(5, *range(1, 11))
    plaza.add(*map(post, range(1, 11)))
    small_pages(monkeypatch, 13)
    events = [like(t(n), actor) for t in (review, post) for n in range(1, 11) for actor in (1, 2)]
    persist.save(events)
    roll_up_page = mysql_roll_up._roll_up_page
    pages = []

    def roll_up_until_killed(cursor: Cursor, *args: int) -> mysql_roll_up.RolledUpRange:
        """End the process after ``step`` statements of the second page."""
        pages.append(1)
        if len(pages) != 2:
            return roll_up_page(cursor, *args)
        executed: list[int] = []
        execute = cursor.execute

        def execute_until_killed(*args: Any) -> int:
            if len(executed) == step:
                raise Killed
            executed.append(1)
            return execute(*args)

        monkeypatch.setattr(cursor, "execute", execute_until_killed)
        roll_up_page(cursor, *args)
        raise Killed

    monkeypatch.setattr(mysql_roll_up, "_roll_up_page", roll_up_until_killed)
    with pytest.raises(Killed):
        like_roll_up.roll_up_likes()
    assert watermark() < seqs()[-1]
    like_roll_up.roll_up_likes()
    assert review_likes() == totals()
    assert hours() == hours_in_log()
    assert set(review_likes().values()) == set(hours().values()) == {2}


# ---------------------------------------------------------------- random histories


def random_events(rng: random.Random, count: int) -> list[ReactionEvent]:
    """Return likes and unlikes of few actors and targets, out of order, some provisional."""
    return [
        like(
            rng.choice((review, post))(rng.randint(1, 6)),
            rng.randint(1, 5),
            on=rng.random() < 0.6,
            at=-rng.randint(0, 30) * HOUR_US // 4 + rng.randint(0, 50),
            provisional=rng.random() < 0.2,
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_likes_equal_totals_and_hours_equal_the_log_after_random_histories(
    plaza: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Given repeated and late batches, slow and failed writers, failed runs, small pages."""
    rng = random.Random(seed)
    add_reviews(5, *range(1, 7))
    plaza.add(*map(post, range(1, 7)))
    fail_instead_of_waiting(monkeypatch)
    batches: list[list[ReactionEvent]] = []
    runs = 0
    for _ in range(12):
        small_pages(monkeypatch, rng.choice((1, 3, 10, 1_000)))
        batch = random_events(rng, rng.randint(1, 12))
        batches.append(batch)
        match rng.choice(("save", "save", "repeat", "slow", "fail")):
            case "save":
                persist.save(batch)
            case "repeat":
                persist.save(rng.choice(batches))
            case "slow" | "fail" as outcome:
                with open_transaction(mysql_url) as slow:
                    save_uncommitted(slow, batch)
                    with pytest.raises(MysqlDown):
                        like_roll_up.roll_up_likes()
                    if outcome == "slow":
                        commit(slow)
        if rng.random() < 0.6:
            like_roll_up.roll_up_likes()
            runs += 1
            assert review_likes() == totals()
            assert hours() == hours_in_log()
    like_roll_up.roll_up_likes()
    assert review_likes() == totals()
    assert hours() == hours_in_log()
    assert find_wrong_changes() == []
    assert runs


# ---------------------------------------------------------------- one actor that toggles


def count_rows_read(work: Callable[[], object]) -> int:
    """Return the number of rows and index entries that MySQL reads for ``work``."""

    def read() -> int:
        rows = mysql.fetch_all("SHOW SESSION STATUS LIKE 'Handler_read%%'")
        return sum(int(count) for _, count in rows)

    before = read()
    work()
    return read() - before


def test_the_work_for_an_event_does_not_grow_with_the_history_of_its_actor(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an actor that likes and unlikes a post and a review 2,000 times."""
    add_reviews(5, 51)
    plaza.add(post(1))
    small_pages(monkeypatch, 200)
    work = []
    for start in range(0, 2_000, 100):
        toggles = range(start, start + 100)
        persist.save([like(post(1), 1, on=n % 2 == 0, at=n) for n in toggles])
        persist.save([like(review(51), 1, on=n % 2 == 0, at=n) for n in toggles])
        work.append(count_rows_read(like_roll_up.roll_up_likes))
    assert max(work[10:]) <= 1.1 * max(work[:3])
    assert max(work) < 200 * 10, "a few rows for each of 200 events"
    assert (hours(), review_likes()) == ({}, {51: 0})
    persist.save([like(t, 1, at=2_000) for t in (post(1), review(51))])
    like_roll_up.roll_up_likes()
    assert (list(hours().values()), review_likes()) == ([1], {51: 1})

    late = [like(t, 1, on=False, at=-n) for t in (post(1), review(51)) for n in range(1, 100)]
    repeated = [like(t, 1, on=n % 2 == 0, at=n) for t in (post(1), review(51)) for n in range(99)]
    persist.save(late + repeated)
    persist.save([*repeated, like(review(51), 1, at=2000)])
    like_roll_up.roll_up_likes()
    assert (list(hours().values()), review_likes()) == ([1], {51: 1}), (
        "late and repeated events change nothing"
    )
    assert hours() == hours_in_log()
    assert find_wrong_changes() == []


def test_runs_during_consumption_lose_nothing_and_cause_no_deadlock(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(5, *range(1, 11))
    plaza.add(*map(post, range(1, 11)))
    small_pages(monkeypatch, 100)
    batches = [
        [
            like(t(n), actor, at=actor)
            for t in (review, post)
            for n in range(1, 11)
            for actor in range(first, first + 5)
        ]
        for first in range(1, 201, 5)
    ]
    before, runs = deadlocks(), 0
    with ExitStack() as stack:
        consumers = [
            stack.enter_context(consumer(b)) for b in (batches, batches[::-1], batches[::2])
        ]
        for process in consumers:
            go(process)
        while any(process.poll() is None for process in consumers):
            like_roll_up.roll_up_likes()
            runs += 1
        for process in consumers:
            end(process)
    like_roll_up.roll_up_likes()
    assert runs > 3, "the runs overlap the consumers"
    assert deadlocks() == before
    assert review_likes() == totals() == dict.fromkeys(range(1, 11), 200)
    assert hours() == hours_in_log()
    assert sum(hours().values()) == 2_000
