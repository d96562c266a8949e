"""The reaction log in MySQL: change its partitions, read them page by page, read the log whole.

Partitions change under a table lock (``run_exclusively``). What was read before it is read again
under it, because another run may have changed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date
from typing import Any, TypeVar

import pymysql
from pymysql.cursors import Cursor, SSCursor

from plaza.core.reaction_log.model import (
    SUMS,
    ArchiveLine,
    Checksum,
    LoggedEvent,
    LogKey,
    Partition,
    PartitionSums,
    partition_of,
    plan_days,
)
from plaza.infra.mysql import driver, mysql, sql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.runtime.settings import settings

T = TypeVar("T")

CATCH_ALL = "p_max"  # the partition without an upper bound
LOCK_TIMEOUT_S = 1  # consumers queue behind a session that waits for the table
FETCH_ROWS = 10_000
_COLUMNS = "target_type, target_id, kind, actor_id, version, state, change_by"
_KEY = "target_type, target_id, kind, actor_id, version"
# A row as JSON: the driver decodes one text in half the time of eight columns.
_LINE = (
    """CONCAT('{"target_type":"', target_type, '","target_id":', target_id, ',"kind":"', kind,"""
    """ '","actor_id":', actor_id, ',"state":', state, ',"version":', version, ',"change":',"""
    """ change_by, ',"commit":', db_version, ',"total":', total, '}')"""
)
_SELECT_PARTITIONS = """
    SELECT PARTITION_NAME, PARTITION_DESCRIPTION
    FROM information_schema.PARTITIONS
    WHERE TABLE_SCHEMA = DATABASE()
      AND TABLE_NAME = 'reaction_log'
    ORDER BY PARTITION_ORDINAL_POSITION
    """
# (a, b, c, d, e) > (...), written out, because MySQL uses the index for this form only.
_AFTER_KEY = (
    "(target_type > %(type)s OR (target_type = %(type)s AND (target_id > %(target)s OR"
    " (target_id = %(target)s AND (kind > %(kind)s OR (kind = %(kind)s AND"
    " (actor_id > %(actor)s OR (actor_id = %(actor)s AND version > %(version)s))))))))"
)


def read_partitions() -> list[Partition]:
    """Return the partitions of the log, lowest first. Raises MysqlDown."""
    return [_partition(*row) for row in mysql.fetch_all(_SELECT_PARTITIONS)]


def _partition(name: str, description: str) -> Partition:
    below = None if name == CATCH_ALL else date.fromisoformat(description.strip("'"))
    return Partition(name, below)


def run_exclusively(work: Callable[[Cursor], T]) -> T:
    """Run ``work`` while no other session reads or writes the log; return its result.

    ``work`` may run up to three times. Raises MysqlDown, also when the lock is not granted in 3 s.
    """

    def locked(cursor: Cursor) -> T:
        # The timeout of table locks, for which ALTER TABLE waits, too; not of row locks.
        cursor.execute("SET SESSION lock_wait_timeout = %s", (LOCK_TIMEOUT_S,))
        try:
            cursor.execute("LOCK TABLES reaction_log WRITE")
            try:
                return work(cursor)
            finally:
                cursor.execute("UNLOCK TABLES")
        finally:
            cursor.execute("SET SESSION lock_wait_timeout = DEFAULT")

    return mysql.run_in_transaction(locked)


class TooMuchToMove(Exception):
    """The catch-all partition has more rows than may be moved at once."""


def split_catch_all(today: date, max_moved: int) -> int:
    """Create the partitions of ``plan_days`` under the table lock; return how many.

    MySQL copies every row of the catch-all partition. Raises TooMuchToMove when it has more than
    ``max_moved``; MysqlDown.
    """

    def split(cursor: Cursor) -> int:
        cursor.execute(_SELECT_PARTITIONS)
        partitions = [_partition(*row) for row in cursor.fetchall()]
        highest = partitions[-2].below if len(partitions) > 1 else None
        cursor.execute(
            f"""
            SELECT COUNT(*)
            FROM (
                SELECT 1
                FROM reaction_log PARTITION ({CATCH_ALL})
                LIMIT {max_moved + 1:d}
            ) AS present
            """
        )
        [(row_count,)] = cursor.fetchall()
        oldest = None
        if 0 < row_count <= max_moved:
            cursor.execute(f"SELECT MIN(create_date) FROM reaction_log PARTITION ({CATCH_ALL})")
            [(oldest,)] = cursor.fetchall()
        days = plan_days(highest, oldest, today)
        if days and row_count > max_moved:
            raise TooMuchToMove
        if days:
            new = ", ".join(
                f"PARTITION {name} VALUES LESS THAN ('{below}')"
                for name, below in map(partition_of, days)
            )
            cursor.execute(
                f"ALTER TABLE reaction_log REORGANIZE PARTITION {CATCH_ALL} INTO"
                f" ({new}, PARTITION {CATCH_ALL} VALUES LESS THAN (MAXVALUE))"
            )
        return len(days)

    return run_exclusively(split)


def drop_unless_grown(partition: Partition, head: int) -> bool:
    """Drop the lowest partition unless it has a row above seq ``head``.

    Return whether it no longer exists. Raises MysqlDown.
    """

    def drop(cursor: Cursor) -> bool:
        cursor.execute(_SELECT_PARTITIONS)
        lowest = _partition(*cursor.fetchall()[0])
        if lowest != partition:
            return True  # another run has dropped it
        cursor.execute(
            f"""
            SELECT seq
            FROM reaction_log PARTITION ({partition.name}) FORCE INDEX (by_seq)
            WHERE seq > %s
            LIMIT 1
            """,
            (head,),
        )
        if cursor.fetchall():
            return False
        cursor.execute(f"ALTER TABLE reaction_log DROP PARTITION {partition.name}")
        return True

    return run_exclusively(drop)


def read_highest_seq(partition: Partition) -> int:
    """Return the highest seq in a partition, 0 if it is empty or dropped. Raises MysqlDown."""
    rows = _read_partition(f"SELECT MAX(seq) FROM reaction_log PARTITION ({partition.name})")
    return int(rows[0][0] or 0) if rows else 0


def read_low_watermark() -> int | None:
    """Return the lowest watermark of all readers of the log, a seq; None without readers.

    Raises MysqlDown.
    """
    [(seq,)] = mysql.fetch_all("SELECT MIN(seq) FROM watermark")
    return None if seq is None else int(seq)


def sum_page(
    partition: Partition, head: int, after: LogKey | None, size: int
) -> tuple[dict[date, Checksum], LogKey | None]:
    """Return (day -> checksum of the next ``size`` rows up to seq ``head``, key of the last one).

    The key is None at the end, and if the partition was dropped. Two statements, which read this
    page only. Raises MysqlDown.
    """
    args = {"head": head} | _name_key(after)
    rows = f"""
        FROM reaction_log PARTITION ({partition.name}) FORCE INDEX (PRIMARY)
        WHERE seq <= %(head)s{_after(after)}
        ORDER BY {_KEY}
        """
    sums = _read_partition(
        f"""
        SELECT create_date, COUNT(*), SUM(crc32)
        FROM (
            SELECT create_date, CRC32({_LINE}) AS crc32
            {rows} LIMIT {size:d}
        ) AS page
        GROUP BY create_date
        """,
        args,
    )
    last = _read_partition(f"SELECT {_KEY} {rows} LIMIT 1 OFFSET {size - 1:d}", args)
    return {day: Checksum(events, int(crc32)) for day, events, crc32 in sums}, (
        tuple(last[0]) if last else None
    )


def read_sums(partition: Partition) -> tuple[int, PartitionSums] | None:
    """Return (head, checksums so far) of a partition, None before the first. Raises MysqlDown."""
    rows = mysql.fetch_all(
        "SELECT head, document FROM reaction_log_sum WHERE partition_name = %s", (partition.name,)
    )
    for head, document in rows:
        if (sums := SUMS.read(document)) is not None:
            return head, sums
    return None


def store_sums(partition: Partition, head: int, sums: PartitionSums) -> None:
    """Store the checksums so far of rows up to seq ``head``. Raises MysqlDown."""
    mysql.write(
        """
        INSERT INTO reaction_log_sum (partition_name, head, document)
        VALUES (%s, %s, %s)
        ON DUPLICATE KEY UPDATE head = VALUES(head), document = VALUES(document)
        """,
        (partition.name, head, SUMS.encode(sums)),
    )


def delete_sums(partition: Partition) -> None:
    """Delete the checksums of a partition. Raises MysqlDown."""
    mysql.write("DELETE FROM reaction_log_sum WHERE partition_name = %s", (partition.name,))


def delete_other_sums(partitions: Sequence[Partition]) -> None:
    """Delete the checksums of all partitions but these. Raises MysqlDown."""
    others = f"partition_name NOT IN ({sql.placeholders(len(partitions))})"
    names = [partition.name for partition in partitions]
    mysql.write(f"DELETE FROM reaction_log_sum WHERE {others}", names)


def _after(key: LogKey | None) -> str:
    return "" if key is None else f" AND {_AFTER_KEY}"


def _name_key(key: LogKey | None) -> dict[str, Any]:
    return dict(zip(("type", "target", "kind", "actor", "version"), key or (), strict=False))


def read_page(
    partition: Partition, day: date, head: int, after: LogKey | None, limit: int
) -> list[ArchiveLine]:
    """Return the next rows of a day up to seq ``head``, in the order of the primary key.

    Empty at the end, or if the partition was dropped. Raises MysqlDown.
    """
    rows = _read_partition(
        f"""
        SELECT {_LINE}, version
        FROM reaction_log PARTITION ({partition.name}) FORCE INDEX (PRIMARY)
        WHERE create_date = %(day)s
          AND seq <= %(head)s{_after(after)}
        ORDER BY {_KEY} LIMIT {limit:d}
        """,
        {"day": day, "head": head} | _name_key(after),
    )
    return [ArchiveLine(*row) for row in rows]


def _read_partition(sql: str, args: Sequence[Any] | Mapping[str, Any] = ()) -> list[mysql.Row]:
    """Run one SELECT from a partition; return no rows if another run has dropped it."""
    try:
        return mysql.fetch_all(sql, args)
    except pymysql.err.MySQLError as error:
        if driver.means(error, driver.Meaning.NO_PARTITION):
            return []
        raise


@contextmanager
def snapshot() -> Iterator[Cursor]:
    """Open a streaming cursor in a consistent snapshot.

    Once it has read the log, no partition is dropped until it is closed. Raises MysqlDown.
    """
    try:
        with closing(
            mysql.connect_dedicated(
                database=settings().mysql.database,
                charset="utf8mb4",
                cursorclass=SSCursor,
                connect_timeout=settings().mysql_connect_timeout_s,
                init_command="SET SESSION time_zone = '+00:00'",
            )
        ) as connection:
            connection.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            with connection.cursor() as cursor:
                yield cursor
    except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
        raise MysqlDown(f"MySQL is unavailable: {type(error).__name__}") from error


def count_by_day(cursor: Cursor) -> dict[date, int]:
    """Return the number of rows of each day in MySQL. From here on no partition is dropped."""
    cursor.execute("SELECT create_date, COUNT(*) FROM reaction_log GROUP BY create_date")
    return dict(cursor.fetchall())


def read_all(
    cursor: Cursor, until_us: int, target: tuple[str, int] | None = None
) -> Iterator[list[LoggedEvent]]:
    """Yield every row up to version ``until_us``, of ``target`` if given, in lists of 10,000."""
    of_target = "" if target is None else " AND target_type = %s AND target_id = %s"
    cursor.execute(
        f"SELECT {_COLUMNS} FROM reaction_log WHERE version <= %s{of_target}",
        (until_us, *(target or ())),
    )
    yield from _portions(cursor)


def read_day(cursor: Cursor, day: date) -> Iterator[list[LoggedEvent]]:
    cursor.execute(f"SELECT {_COLUMNS} FROM reaction_log WHERE create_date = %s", (day,))
    yield from _portions(cursor)


def _portions(cursor: Cursor) -> Iterator[list[LoggedEvent]]:
    while rows := cursor.fetchmany(FETCH_ROWS):
        yield [LoggedEvent(*row) for row in rows]


def read_rows(
    cursor: Cursor, target: tuple[str, int] | None = None
) -> Iterable[tuple[str, int, str, int, int, int]]:
    """Return (type, id, kind, actor, version, state) of all reactions, or those to ``target``."""
    where = "" if target is None else " WHERE target_type = %s AND target_id = %s"
    cursor.execute(
        f"SELECT target_type, target_id, kind, actor_id, version, state FROM reaction{where}",
        target or (),
    )
    return iter(cursor)
