"""Events out: what a comment pays for its event, and what readers cost those who comment."""

import threading
import time
from contextlib import closing
from statistics import median, quantiles
from unittest import mock

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from local.stack.servers import connect_mysql
from plaza.core.event_log import append_events, read_events
from plaza.core.event_log.model import EventDraft
from plaza.core.event_log.mysql_events import GATE_WAIT_S
from plaza.core.reactions import Target
from plaza.infra.mysql import mysql
from plaza.social.content import commands
from plaza.social.content.model import Draft

COMMENTS = 2_000
WRITERS = 4
READ_EVERY_S = 0.1  # the head moves every two seconds at most


def measure(harness: Harness) -> list[Figure]:
    """Write comments with and without their events, then with a reader beside them."""
    harness.clear()
    harness.add_posts([1])
    harness.add_users([7])
    count = harness.scale(COMMENTS)
    with mock.patch.multiple(append_events, pass_barrier=_skip, append=_skip):
        _write(1_000_000, count // 4)  # warm
        without_us = _write(2_000_000, count)
    with_us = _write(3_000_000, count)
    alone_ms = _append_at_once(harness, count, is_read=False)
    beside_ms = _append_at_once(harness, count, is_read=True)
    return [
        Figure(
            "events out: a comment's transaction",
            with_us,
            "us",
            Peer("without its event", without_us),
            Goal("at most", 1.3, of="ratio"),
        ),
        Figure(
            "events out: an append, four writers, p99 beside a reader",
            beside_ms[1],
            "ms",
            Peer("without a reader", alone_ms[1]),
        ),
        Figure(
            "events out: the longest of them",
            beside_ms[2],
            "ms",
            Peer("without a reader", alone_ms[2]),
            Goal("at most", GATE_WAIT_S * 1_000 + 100),
        ),
    ]


def _skip(*_: object) -> None:
    """Append nothing."""


def _write(first_id: int, count: int) -> float:
    """Return the median time of a comment's transaction, in microseconds."""
    times = []
    draft = Draft(type="comment", author_id=7, body="Hello", parent_id=1)
    for number in range(count):
        target = Target("comment", first_id + number)
        began = time.perf_counter()
        mysql.run_in_transaction(
            lambda cursor, target=target: commands._write(cursor, target, draft, None)  # type: ignore[misc]
        )
        times.append(time.perf_counter() - began)
    return median(times) * 1e6


def _append_at_once(harness: Harness, count: int, *, is_read: bool) -> tuple[float, float, float]:
    """Return the median, the 99th percentile and the maximum of the time of a transaction that
    appends, in milliseconds, by four writers; ``is_read``: beside a reader."""
    times: list[float] = []

    def write() -> None:
        with closing(connect_mysql(harness.mysql_url)) as connection:
            own = [_append(connection, number) for number in range(count)]
        times.extend(own)

    writers = [threading.Thread(target=write) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    while is_read and any(writer.is_alive() for writer in writers):
        read_events.find_head()
        time.sleep(READ_EVERY_S)
    for writer in writers:
        writer.join()
    return median(times) * 1e3, quantiles(times, n=100)[98] * 1e3, max(times) * 1e3


def _append(connection: "Connection[Cursor]", number: int) -> float:
    draft = EventDraft("comment.created", 7, ("post", 1), number)
    began = time.perf_counter()
    connection.begin()
    with connection.cursor() as cursor:
        append_events.pass_barrier(cursor)
        append_events.append(cursor, [draft])
    connection.commit()
    return time.perf_counter() - began
