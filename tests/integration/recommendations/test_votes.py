"""The roll-up on a real MariaDB: nothing skipped and nothing twice, whatever happens around it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from pymysql.cursors import Cursor

from local.stack.servers import connect_mysql
from plaza.infra import mysql
from plaza.infra.mysql import MysqlDown
from plaza.reactions import COLLECT, Target, mysql_reactions, persist
from plaza.reactions.model import ReactionEvent
from plaza.recommendations import mysql_votes, vote_roll_up
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
    totals,
    votes,
)
from tests.support.plaza import World
from tests.support.stores import wait_for

MS_US = 1_000


def watermark() -> int:
    rows = mysql.fetch_all("SELECT seq FROM watermark WHERE name = 'votes'")
    return rows[0][0] if rows else 0


def stale() -> dict[int, int]:
    return dict(mysql.fetch_all("SELECT shop_id, seq FROM stale_list"))


def seqs() -> list[int]:
    return [seq for (seq,) in mysql.fetch_all("SELECT seq FROM reaction_log ORDER BY seq")]


def small_pages(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(vote_roll_up, "ROWS_PER_PAGE", size)


# ---------------------------------------------------------------- one run


def test_votes_are_the_likes_of_reviews_and_their_shops_are_stale(plaza: World) -> None:
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
    vote_roll_up.roll_up_votes()
    assert votes() == {51: 2, 52: 0, 61: 0}
    assert stale().keys() == {5}
    assert stale()[5] in seqs()
    assert hours() == {}
    assert watermark() == seqs()[-1]


def test_hours_of_posts_hold_what_was_given_less_what_was_taken_back(plaza: World) -> None:
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
    vote_roll_up.roll_up_votes()
    assert hours() == {(hour - 1, 1): 1, (hour, 1): 1, (hour - 1, 2): 1}


def test_a_like_that_changed_nothing_is_counted_once(plaza: World) -> None:
    """While Redis is away every request becomes an event, and so does a like of one who likes."""
    plaza.add(post(1))
    persist.save([like(post(1), 1, at=n * MS_US, provisional=True) for n in range(20)])
    persist.save([like(post(1), 2, at=n) for n in range(2)])
    persist.save([like(post(1), 3, on=False, provisional=True)])
    vote_roll_up.roll_up_votes()
    assert sum(hours().values()) == 2
    persist.save([like(post(1), 1, at=n * MS_US, provisional=True) for n in range(20, 25)])
    persist.save([like(post(1), 1, on=False, at=30 * MS_US, provisional=True)])
    vote_roll_up.roll_up_votes()
    assert sum(hours().values()) == 1


def test_a_like_that_is_logged_after_its_unlike_changes_no_hour(plaza: World) -> None:
    plaza.add(post(1))
    persist.save([like(post(1), 1, on=False, at=9)])
    vote_roll_up.roll_up_votes()
    assert hours() == {}
    persist.save([like(post(1), 1, on=True, at=-HOUR_US)])
    vote_roll_up.roll_up_votes()
    assert hours() == hours_in_log() == {}


def test_a_run_without_anything_new_does_nothing(plaza: World) -> None:
    add_reviews(5, 51)
    assert vote_roll_up.roll_up_votes() == 0
    persist.save([like(review(51), 1)])
    assert vote_roll_up.roll_up_votes() == watermark()
    mysql.write("DELETE FROM stale_list")
    mysql.write("UPDATE content SET votes = 77")
    vote_roll_up.roll_up_votes()
    assert (votes(), stale()) == ({51: 77}, {}), "what was rolled up is not looked at again"


def test_old_hours_are_deleted_and_do_not_come_back(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(post(1))
    monkeypatch.setattr(vote_roll_up, "_ROWS_PER_DELETE", 2)
    hour = early_in_an_hour()
    begin = hour * HOUR_US - NOW_US
    mysql.write(
        "INSERT INTO post_hour (hour, post_id, net) VALUES "
        + ",".join(f"({hour - vote_roll_up.RETENTION_HOURS - n}, {n}, 1)" for n in range(6))
    )
    persist.save([like(post(1), n, at=begin - days * 24 * HOUR_US) for n, days in ((1, 9), (2, 7))])
    vote_roll_up.roll_up_votes()
    assert hours() == {(hour - vote_roll_up.RETENTION_HOURS, 0): 1, (hour - 168, 1): 1}


def test_a_run_stops_in_time_and_the_next_goes_on(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(5, 51)
    persist.save([like(review(51), actor) for actor in range(10)])
    small_pages(monkeypatch, 4)
    monkeypatch.setattr(vote_roll_up, "MAX_RUN_S", 0)
    ends = [vote_roll_up.roll_up_votes() for _ in range(3)]
    assert ends[0] < ends[1] < ends[2] or ends[2] == seqs()[-1]
    monkeypatch.setattr(vote_roll_up, "MAX_RUN_S", 60)
    assert vote_roll_up.roll_up_votes() == seqs()[-1]
    assert votes() == {51: 10}


def test_a_page_takes_the_same_number_of_statements_whatever_it_holds(plaza: World) -> None:
    add_reviews(5, *range(1, 101))
    plaza.add(*map(post, range(1, 101)))
    taken = []
    for round_, size in enumerate((10, 100, 1_000)):
        persist.save(
            [like((review, post)[n % 2](n % 100 + 1), round_ * 10_000 + n + 1) for n in range(size)]
        )
        before = statements()
        vote_roll_up.roll_up_votes()
        taken.append(statements() - before - 1)
    assert len(set(taken)) == 1, taken
    assert taken[0] <= 15, "head 1, the gate 4, a page 9, old hours 1"


def test_a_page_reads_its_part_of_the_log_by_index(plaza: World) -> None:
    add_reviews(5, *range(1, 21))
    plaza.add(*map(post, range(1, 21)))
    for begin in range(0, 20_000, 1_000):
        persist.save([like((review, post)[n % 2](n % 20 + 1), begin + n + 1) for n in range(1_000)])
    vote_roll_up.roll_up_votes()
    persist.save([like(review(1), 50_000), like(post(1), 50_000)])

    def rows_read() -> int:
        rows = mysql.fetch_all("SHOW SESSION STATUS LIKE 'Handler_read%%'", ())
        return sum(int(count) for name, count in rows if not name.endswith("deleted"))

    before = rows_read()
    vote_roll_up.roll_up_votes()
    assert rows_read() - before < 200


# ---------------------------------------------------------------- the order of commits


@contextmanager
def stranger(mysql_url: str) -> Iterator[Cursor]:
    """A transaction of another connection, as a consumer or another run has it."""
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        other.begin()
        yield cursor
        other.rollback()


def commit(cursor: Cursor) -> None:
    cursor.connection.commit()


def never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on a roll-up does not wait for writers, it fails."""
    monkeypatch.setattr(mysql_reactions, "LOCK_TIMEOUT_S", 0)


def save_in(cursor: Cursor, facts: Sequence[ReactionEvent]) -> None:
    """What a consumer does up to its commit."""
    persist._persist_batch(cursor, facts)


@pytest.mark.parametrize("gated", [True, False], ids=["with the gate", "without it"])
def test_a_fact_that_commits_after_one_with_a_higher_seq_is_not_skipped(
    plaza: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch, gated: bool
) -> None:
    """The trap: seq is given when a fact is appended, and seen when it is committed."""
    add_reviews(5, 51, 52)
    if not gated:
        monkeypatch.setattr(mysql_reactions, "pass_log_gate", lambda cursor: 0)
    with stranger(mysql_url) as slow:
        save_in(slow, [like(review(51), 1)])  # the lower seq, not committed
        persist.save([like(review(52), 1)])  # the higher, committed
        never_wait(monkeypatch)
        if gated:
            with pytest.raises(MysqlDown):
                vote_roll_up.roll_up_votes()
            assert watermark() == 0, "it gives up rather than to skip"
        else:
            vote_roll_up.roll_up_votes()
        commit(slow)
    vote_roll_up.roll_up_votes()
    assert totals() == {51: 1, 52: 1}
    assert votes() == (totals() if gated else {51: 0, 52: 1})


def test_the_roll_up_waits_for_who_is_appending_and_nobody_else(
    plaza: World, mysql_url: str
) -> None:
    add_reviews(5, 51, 52, 53)
    with stranger(mysql_url) as slow, ThreadPoolExecutor() as pool:
        save_in(slow, [like(review(51), 1)])
        persist.save([like(review(52), 1)])
        rolling = pool.submit(vote_roll_up.roll_up_votes)
        with stranger(mysql_url) as other:
            wait_for(lambda: lock_waits(other) == 1, "the roll-up waits for the slow one")
        assert not rolling.done()
        commit(slow)
        rolling.result(timeout=20)
    assert votes() == {51: 1, 52: 1, 53: 0}


def lock_waits(cursor: Cursor) -> int:
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
    [(_, count)] = cursor.fetchall()
    return int(count)


def test_what_is_appended_while_the_roll_up_is_at_work_is_for_the_next(
    plaza: World, mysql_url: str
) -> None:
    add_reviews(5, 51, 52)
    persist.save([like(review(51), 1)])
    head = mysql_reactions.read_log_head()
    mysql_reactions.wait_for_log_writers()
    with stranger(mysql_url) as late:
        save_in(late, [like(review(52), 1)])
        assert mysql_votes.roll_up_page(head, 100, 0).end == head
        commit(late)
    assert mysql_votes.roll_up_page(head, 100, 0).end == head
    assert votes() == {51: 1, 52: 0}
    vote_roll_up.roll_up_votes()
    assert votes() == {51: 1, 52: 1}


def test_what_was_appended_and_rolled_back_leaves_a_gap_and_nothing_else(
    plaza: World, mysql_url: str
) -> None:
    add_reviews(5, 51)
    with stranger(mysql_url) as failed:
        save_in(failed, [like(review(51), actor) for actor in range(1, 51)])
    persist.save([like(review(51), 1), like(review(51), 2)])
    vote_roll_up.roll_up_votes()
    assert votes() == {51: 2}


# ---------------------------------------------------------------- overlapping and failing runs


@pytest.mark.parametrize("first", ["commits", "fails"])
def test_two_runs_at_one_time_take_turns_and_do_everything_once(
    plaza: World, mysql_url: str, first: str
) -> None:
    add_reviews(5, 51)
    plaza.add(post(1))
    persist.save([like(t, actor) for t in (review(51), post(1)) for actor in range(1, 11)])
    head = mysql_reactions.read_log_head()
    with stranger(mysql_url) as one, ThreadPoolExecutor() as pool:
        one_rolled = mysql_votes._roll_up_page(one, head, 10, 0)
        other = pool.submit(vote_roll_up.roll_up_votes)
        with stranger(mysql_url) as onlooker:
            wait_for(lambda: lock_waits(onlooker) == 1, "the second waits for the first")
        commit(one) if first == "commits" else one.connection.rollback()
        assert other.result(timeout=20) == head
    assert one_rolled.end < head
    assert (votes(), sum(hours().values())) == ({51: 10}, 10)
    assert hours() == hours_in_log()
    assert watermark() == head


def test_a_run_that_was_overtaken_turns_back_nothing(plaza: World) -> None:
    add_reviews(5, 51)
    plaza.add(post(1))
    persist.save([like(post(1), 1)])
    late_head = mysql_reactions.read_log_head()
    persist.save([like(post(1), 2), like(review(51), 2)])
    done = vote_roll_up.roll_up_votes()
    assert mysql_votes.roll_up_page(late_head, 100, 0) == (done, done)
    assert watermark() == done
    assert hours() == hours_in_log()


class Killed(Exception):
    """The process ends here."""


@pytest.mark.parametrize("step", range(1, 9))
def test_a_run_that_ends_after_any_step_leaves_nothing_half_done(
    plaza: World, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    add_reviews(5, *range(1, 11))
    plaza.add(*map(post, range(1, 11)))
    small_pages(monkeypatch, 13)
    facts = [like(t(n), actor) for t in (review, post) for n in range(1, 11) for actor in (1, 2)]
    persist.save(facts)
    whole_page = mysql_votes._roll_up_page
    pages = []

    def killed(cursor: Cursor, *args: int) -> mysql_votes.RolledUpRange:
        """The second page ends after some of its statements."""
        pages.append(1)
        if len(pages) != 2:
            return whole_page(cursor, *args)
        done: list[int] = []
        execute = cursor.execute

        def execute_some(*args: Any) -> int:
            if len(done) == step:
                raise Killed
            done.append(1)
            return execute(*args)

        monkeypatch.setattr(cursor, "execute", execute_some)
        whole_page(cursor, *args)
        raise Killed

    monkeypatch.setattr(mysql_votes, "_roll_up_page", killed)
    with pytest.raises(Killed):
        vote_roll_up.roll_up_votes()
    assert watermark() < seqs()[-1]
    vote_roll_up.roll_up_votes()
    assert votes() == totals()
    assert hours() == hours_in_log()
    assert set(votes().values()) == set(hours().values()) == {2}


# ---------------------------------------------------------------- whatever happened


def random_facts(draw: random.Random, count: int) -> list[ReactionEvent]:
    """Likes and unlikes of few actors and targets, in and out of order, some provisional."""
    return [
        like(
            draw.choice((review, post))(draw.randint(1, 6)),
            draw.randint(1, 5),
            on=draw.random() < 0.6,
            at=-draw.randint(0, 30) * HOUR_US // 4 + draw.randint(0, 50),
            provisional=draw.random() < 0.2,
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_after_any_history_votes_are_the_totals_and_hours_are_the_log(
    plaza: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Batches again and late, writers that are slow or fail, runs that give up, small pages."""
    draw = random.Random(seed)
    add_reviews(5, *range(1, 7))
    plaza.add(*map(post, range(1, 7)))
    never_wait(monkeypatch)
    batches: list[list[ReactionEvent]] = []
    runs = 0
    for _ in range(12):
        small_pages(monkeypatch, draw.choice((1, 3, 10, 1_000)))
        batch = random_facts(draw, draw.randint(1, 12))
        batches.append(batch)
        match draw.choice(("save", "save", "again", "slow", "fails")):
            case "save":
                persist.save(batch)
            case "again":
                persist.save(draw.choice(batches))
            case "slow" | "fails" as how:
                with stranger(mysql_url) as slow:
                    save_in(slow, batch)
                    with pytest.raises(MysqlDown):
                        vote_roll_up.roll_up_votes()
                    if how == "slow":
                        commit(slow)
        if draw.random() < 0.6:
            vote_roll_up.roll_up_votes()
            runs += 1
            assert votes() == totals()
            assert hours() == hours_in_log()
    vote_roll_up.roll_up_votes()
    assert votes() == totals()
    assert hours() == hours_in_log()
    assert find_wrong_changes() == []
    assert runs


# ---------------------------------------------------------------- one account that toggles


def count_rows_read(work: Callable[[], object]) -> int:
    """How many rows and index entries the database touches for ``work``."""

    def read() -> int:
        found = mysql.fetch_all("SHOW SESSION STATUS LIKE 'Handler_read%%'")
        return sum(int(count) for _, count in found)

    before = read()
    work()
    return read() - before


def test_the_work_for_an_event_does_not_grow_with_the_history_of_its_account(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One account that likes a post and a review and takes it back, 2,000 times."""
    add_reviews(5, 51)
    plaza.add(post(1))
    small_pages(monkeypatch, 200)
    work = []
    for start in range(0, 2_000, 100):
        toggles = range(start, start + 100)
        persist.save([like(post(1), 1, on=n % 2 == 0, at=n) for n in toggles])
        persist.save([like(review(51), 1, on=n % 2 == 0, at=n) for n in toggles])
        work.append(count_rows_read(vote_roll_up.roll_up_votes))
    assert max(work[10:]) <= 1.1 * max(work[:3])
    assert max(work) < 200 * 10, "a few rows for each of 200 events"
    assert (hours(), votes()) == ({}, {51: 0})
    persist.save([like(t, 1, at=2_000) for t in (post(1), review(51))])
    vote_roll_up.roll_up_votes()
    assert (list(hours().values()), votes()) == ([1], {51: 1})

    late = [like(t, 1, on=False, at=-n) for t in (post(1), review(51)) for n in range(1, 100)]
    again = [like(t, 1, on=n % 2 == 0, at=n) for t in (post(1), review(51)) for n in range(99)]
    persist.save(late + again)
    persist.save([*again, like(review(51), 1, at=2000)])
    vote_roll_up.roll_up_votes()
    assert (list(hours().values()), votes()) == ([1], {51: 1}), "late and again changes nothing"
    assert hours() == hours_in_log()
    assert find_wrong_changes() == []


def test_runs_beside_consumers_at_work_lose_nothing_and_lock_nobody_out(
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
        all_of_them = [
            stack.enter_context(consumer(b)) for b in (batches, batches[::-1], batches[::2])
        ]
        for one in all_of_them:
            go(one)
        while any(one.poll() is None for one in all_of_them):
            vote_roll_up.roll_up_votes()
            runs += 1
        for one in all_of_them:
            end(one)
    vote_roll_up.roll_up_votes()
    assert runs > 3, "it did run beside them"
    assert deadlocks() == before
    assert votes() == totals() == dict.fromkeys(range(1, 11), 200)
    assert hours() == hours_in_log()
    assert sum(hours().values()) == 2_000
