"""Consumers, comments, deletions, marks and erasures at once: no deadlock between them, nothing
given up, and the unread counter is right. ``make races`` runs eight consumers for a minute."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count

import pytest

from local.stack.servers import connect_mysql
from plaza.core.reactions import Target, persist
from plaza.core.reactions.model import ReactionEvent
from plaza.infra.mysql import mysql, participants
from plaza.infra.mysql.driver import SharedTlsConnection
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import Changes
from plaza.infra.runtime.clock import Deadline
from plaza.notifications.notifications import erasure, list_groups, mark_read, participant
from plaza.social.content import commands, mysql_store
from plaza.social.content.model import Draft, move_of
from tests.support.consumers import consumer, deadlocks, end, go, make_event
from tests.support.depth import read_count
from tests.support.plaza import World
from tests.support.stores import add_users
from tests.support.unread import check_unread, turn_on, unread

AUTHORS = (101, 102, 103)
POSTS = tuple(Target("post", number) for number in range(1_000, 1_012))
CONSUMERS = int(os.environ.get("PLAZA_RACE_CONSUMERS", "4"))
SECONDS = read_count("PLAZA_RACE_SECONDS", 2, 8)
BATCH, BATCHES = 60, 3 * SECONDS // 2
if "PLAZA_RACE_SECONDS" in os.environ:  # all of them wait for the same posts, one after another
    BATCHES = 3 * SECONDS


def author_of(post: Target) -> int:
    return AUTHORS[post.id % len(AUTHORS)]


@pytest.fixture(autouse=True)
def world(plaza: World) -> World:
    add_users(*AUTHORS, *range(1, 40))
    for post in POSTS:
        plaza.add(post, author_id=author_of(post))
    turn_on()
    return plaza


class Traffic:
    """What API processes do to MySQL beside the consumers, each in a connection of its own."""

    def __init__(self, mysql_url: str, seed: int) -> None:
        self.mysql_url, self.rng = mysql_url, random.Random(seed)
        self.ended = threading.Event()
        self.done = 0
        self.errors: list[str] = []

    def run(self, work: Callable[[Cursor, random.Random], None]) -> None:
        """Repeat one kind of transaction; a deadlock is an error here, not a repetition."""
        rng = random.Random(self.rng.random())
        with connect_mysql(self.mysql_url) as connection:
            connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            connection.query("SET SESSION group_concat_max_len = 4194304")
            while not self.ended.is_set():
                connection.begin()
                try:
                    with connection.cursor() as cursor:
                        work(cursor, rng)
                    connection.commit()
                    self.done += 1
                except Exception as error:
                    connection.rollback()
                    self.errors.append(repr(error))
                time.sleep(0.002)


def write_comment(cursor: Cursor, rng: random.Random) -> None:
    post = rng.choice(POSTS)
    draft = Draft(type="comment", author_id=rng.randrange(1, 40), parent_id=post.id, body="b")
    target = Target("comment", rng.randrange(10**12))
    commands._write(cursor, target, draft, None, True)


def delete_comment(cursor: Cursor, rng: random.Random) -> None:
    """Delete a comment whose write was not announced: it waits for the counter and the unread
    counter."""
    cursor.execute(
        "SELECT content_id FROM content WHERE content_type = 'comment' AND deleted_at IS NULL"
        " LIMIT 20"
    )
    if live := cursor.fetchall():
        target = Target("comment", rng.choice(live)[0])
        stored = mysql_store.lock(cursor, target)
        assert stored
        if not stored.deleted:
            commands._delete(cursor, stored.text)


def notify_pending(cursor: Cursor, rng: random.Random) -> None:
    cursor.execute(
        "SELECT content_id, parent_id FROM content WHERE content_type = 'comment'"
        " AND notified_sequence IS NULL AND deleted_at IS NULL LIMIT 1"
    )
    for comment_id, post_id in cursor.fetchall():
        pending = mysql_store.lock_pending_notifications(cursor, [comment_id])
        if pending:
            author = author_of(Target("post", post_id))
            moves = [move_of(author, post_id, by, on=True) for by in pending.values()]
            notified = participants.run(cursor, Changes(moves))
            mysql_store.set_notified_sequences(cursor, dict(zip(pending, notified, strict=True)))


@pytest.mark.sampled
def test_no_deadlock_and_nothing_is_lost(mysql_url: str) -> None:
    """Given consumers of likes on all posts, comments, deletions that wait, and a refresh."""
    rng = random.Random(1)
    before = deadlocks()
    traffic = Traffic(mysql_url, 2)
    kinds = (write_comment, write_comment, delete_comment, delete_comment, notify_pending)

    def draw() -> ReactionEvent:
        on, at = rng.random() < 0.7, rng.randrange(10**9)
        return make_event(rng.randrange(1, 60), on, at, rng.choice(POSTS))

    batches = [[[draw() for _ in range(BATCH)] for _ in range(BATCHES)] for _ in range(CONSUMERS)]
    warm = [make_event(70, True, 1, post) for post in POSTS]
    persist.save(warm)
    with ThreadPoolExecutor() as pool, ExitStack() as stack:
        futures = [pool.submit(traffic.run, kind) for kind in kinds]
        try:
            processes = [stack.enter_context(consumer(own)) for own in batches]
            for process in processes:
                go(process)
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                for author in AUTHORS:
                    page = list_groups.list_groups(author, None, 20, is_displayed=True)
                    mark_read.mark_read(author, page.state.version)
                erasure.erase(AUTHORS[0], Deadline.in_s(5))
            for process in processes:
                end(process)
        finally:
            traffic.ended.set()
        for future in futures:
            future.result()
    assert traffic.errors == []
    assert traffic.done > 100
    assert deadlocks() - before == 0
    check_unread()


class Killed(BaseException):
    """The end of a process."""


def end_before_packet(
    number: int, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Run ``work`` in a process that ends before it sends its ``number``-th packet to MySQL; return
    whether it sends so many."""
    sent = 0
    execute = SharedTlsConnection._execute_command  # type: ignore[attr-defined]

    def execute_or_end(connection: object, command: int, sql: str | bytes) -> None:
        nonlocal sent
        sent += 1
        if sent == number:
            raise Killed
        execute(connection, command, sql)

    with monkeypatch.context() as patch:
        patch.setattr(SharedTlsConnection, "_execute_command", execute_or_end)
        try:
            work()
        except Killed:
            return True
    return False


def test_a_consumer_that_ends_between_packets_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a process that ends before each packet of a batch, and the redelivered batch."""
    persist.save([make_event(1, True, 1, POSTS[0])])
    events = [make_event(2, True, 2, POSTS[0]), make_event(1, False, 3, POSTS[0])]
    before = unread(author_of(POSTS[0]))
    numbers = range(1, 4)
    for number in numbers:
        mysql.fetch_all("SELECT 1")  # so that the connection is open
        assert end_before_packet(number, partial(persist.save, events), monkeypatch)
        assert unread(author_of(POSTS[0])) == before
        check_unread()
    persist.save(events)
    persist.save(events)
    assert unread(author_of(POSTS[0])) == (2, 1)
    check_unread()


def test_owners_are_locked_after_the_log_and_counters_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So other targets of an owner do not wait for these writes."""
    packets: list[str] = []
    execute = SharedTlsConnection._execute_command  # type: ignore[attr-defined]

    def record_and_execute(connection: object, command: int, sql: str | bytes) -> None:
        packets.append(sql.decode() if isinstance(sql, bytes) else sql)
        execute(connection, command, sql)

    monkeypatch.setattr(SharedTlsConnection, "_execute_command", record_and_execute)
    persist.save([make_event(1, True, 1, POSTS[0])])
    locking = next(packet for packet in packets if "FROM unread_counter " in packet)
    writes = ("INTO reaction_log", "INTO counter", "FROM unread_counter ")
    sequences = [locking.index(text) for text in writes]
    assert sequences == sorted(sequences)


def run(work: Callable[[Cursor, random.Random], None], seed: int = 3) -> None:
    mysql.run_in_transaction(lambda cursor: work(cursor, random.Random(seed)))


def delete_notified(cursor: Cursor, rng: random.Random) -> None:
    """Delete the comment that notified."""
    cursor.execute("SELECT content_id FROM content WHERE notified_sequence > 0")
    [(comment_id,)] = cursor.fetchall()
    stored = mysql_store.lock(cursor, Target("comment", comment_id))
    assert stored
    commands._delete(cursor, stored.text)


def read_all() -> list[list[tuple[object, ...]]]:
    return [
        mysql.fetch_all("SELECT * FROM unread_counter ORDER BY user_id"),
        mysql.fetch_all("SELECT * FROM notification_group ORDER BY user_id, kind, subject_id"),
        mysql.fetch_all("SELECT content_id, notified_sequence, deleted_at FROM content ORDER BY 1"),
    ]


@pytest.mark.parametrize("name", ["list", "mark", "erase", "clear", "comment", "delete", "refresh"])
def test_what_ends_between_packets_leaves_nothing_and_can_be_repeated(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given likes of all posts, a comment that waits for the refresh and one that notified."""
    run(write_comment)
    persist.save([make_event(actor, True, actor, post) for post in POSTS for actor in (1, 2)])
    run(write_comment, seed=4)
    author = author_of(POSTS[0])
    version = list_groups.list_groups(author, None, 20, is_displayed=True).state.version
    persist.save([make_event(3, True, 50, post) for post in POSTS])
    works: dict[str, Callable[[], object]] = {
        "list": lambda: list_groups.list_groups(author, None, 20, is_displayed=True),
        "mark": lambda: mark_read.mark_read(author, version),
        "erase": lambda: erasure.erase(author, Deadline.in_s(5)),
        "clear": lambda: participant.clear([(*POSTS[0], author)]),
        "comment": lambda: run(write_comment, seed=5),
        "delete": lambda: run(delete_notified),
        "refresh": lambda: run(notify_pending),
    }
    states = [read_all()]
    for number in count(1):
        mysql.fetch_all("SELECT 1")  # so that the connection is open
        was_ended = end_before_packet(number, works[name], monkeypatch)
        states.append(read_all())
        check_unread()
        if not was_ended or states[-1] != states[0]:
            break
    assert len(states) > 3
    assert states[-1] != states[0]


def test_concurrent_first_notifies_create_one_unread(mysql_url: str) -> None:
    """Given two consumers whose owners have no unread counters, in crossed order."""
    pairs = [
        [make_event(actor, True, number, POSTS[number % 3]) for number in range(actor, actor + 6)]
        for actor in range(1, 9)
    ]
    with ExitStack() as stack:
        processes = [stack.enter_context(consumer([batch])) for batch in pairs[:4]]
        for process in processes:
            go(process)
        for process in processes:
            end(process)
    check_unread()
    assert sum(unread(author)[1] for author in AUTHORS) == 3
    rows = mysql.fetch_all("SELECT COUNT(*) FROM reaction WHERE notified_sequence = 0")
    assert rows == [(0,)]
