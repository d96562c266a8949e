"""Migrations of a table that grows: seconds, and how long a concurrent insert waits."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from bench.figures import Figure, Goal
from bench.harness import Harness
from cli.paths import CommandError
from local.stack.servers import connect_mysql
from plaza.infra.mysql import mysql

ROWS = 1_000_000
MAX_WAIT_MS = 1_000  # what a deploy may add to a request or a batch


class Change(NamedTuple):
    """A change of a table. ``is_deployed``: a deploy may run it. ``reads_for_s``: how long a
    transaction that has read the table stays open."""

    name: str
    actions: str
    is_deployed: bool = False
    reads_for_s: float = 0


CHANGES = (
    Change("a column at the end, INSTANT", "ADD COLUMN more BIGINT NULL, ALGORITHM=INSTANT", True),
    Change(
        "the same behind a transaction of 1 s",
        "ADD COLUMN third BIGINT NULL, ALGORITHM=INSTANT",
        reads_for_s=1,
    ),
    Change("a key, INPLACE", "ADD KEY by_day (created_on, version), ALGORITHM=INPLACE, LOCK=NONE"),
    Change("a column by COPY", "ADD COLUMN another BIGINT NULL, ALGORITHM=COPY"),
)
_COLUMNS = {
    "reaction": "target_type, target_id, kind, actor_id, state, version",
    "reaction_log": "target_type, target_id, kind, actor_id, state, version, change_by, total,"
    " db_version, create_date",
}
_VALUES = {"reaction": "", "reaction_log": ", 1, 1, {n}, CURRENT_DATE"}


def measure(harness: Harness) -> list[Figure]:
    """Change copies of both tables with a million rows, while another connection inserts."""
    rows, figures = harness.scale(ROWS), []
    for table in _COLUMNS:
        mysql.write("DROP TABLE IF EXISTS grown")
        mysql.write(f"CREATE TABLE grown LIKE {table}")
        with closing(connect_mysql(harness.mysql_url)) as connection:
            cursor = connection.cursor()
            cursor.execute(f"{_insert(table, 'seq')} FROM seq_1_to_{rows}")
            connection.commit()
            for change in CHANGES:
                actions = change.actions.replace("created_on", _day_of(table))
                with (
                    reading(harness.mysql_url, change.reads_for_s),
                    inserting(harness.mysql_url, table, rows) as waits_s,
                ):
                    began_s = time.perf_counter()
                    cursor.execute(f"ALTER TABLE grown {actions}")
                    took_s = time.perf_counter() - began_s
                goal = Goal("at most", MAX_WAIT_MS) if change.is_deployed else None
                figures += [
                    Figure(f"{table} of {rows:,} rows: {change.name}", took_s, "s"),
                    Figure("  longest insert meanwhile", max(waits_s) * 1000, "ms", goal=goal),
                ]
    mysql.write("DROP TABLE grown")
    return figures


def _day_of(table: str) -> str:
    return "created_at" if table == "reaction" else "create_date"


def _insert(table: str, number: str) -> str:
    values = _VALUES[table].format(n=number)
    return (
        f"INSERT INTO grown ({_COLUMNS[table]})"
        f" SELECT 'post', {number} DIV 1000, 'like', {number}, 1, {number}{values}"
    )


@contextmanager
def reading(mysql_url: str, seconds: float) -> Iterator[None]:
    """Keep a transaction that has read the table open for a while."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("START TRANSACTION")
        cursor.execute("SELECT 1 FROM grown LIMIT 1")
        timer = threading.Timer(seconds, connection.rollback)
        timer.start()
        if not seconds:
            timer.join()
        try:
            yield
        finally:
            timer.join()


@contextmanager
def inserting(mysql_url: str, table: str, after: int) -> Iterator[list[float]]:
    """Insert rows one by one in the block; yield the list of their durations in seconds, which has
    all after the block."""
    waits_s: list[float] = []
    is_over = threading.Event()

    def insert() -> None:
        with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
            number = after + time.time_ns() // 1000  # no insert takes less than 1 us
            while not is_over.is_set() or not waits_s:
                number += 1
                began_s = time.perf_counter()
                cursor.execute(_insert(table, str(number)))
                connection.commit()
                waits_s.append(time.perf_counter() - began_s)

    thread = threading.Thread(target=insert)
    thread.start()
    while not waits_s and thread.is_alive():
        time.sleep(0.001)
    if not waits_s:
        raise CommandError(f"no row could be inserted into {table}")
    waits_s.clear()
    try:
        yield waits_s
    finally:
        is_over.set()
        thread.join()
