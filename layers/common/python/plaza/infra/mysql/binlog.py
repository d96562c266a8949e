"""The row binlog of MySQL: changes of rows in given tables since a offset, by any client.

Needs ``log_bin``, ``binlog_format=ROW``, ``binlog_row_image=FULL`` and the privileges REPLICATION
SLAVE and REPLICATION CLIENT (MariaDB: BINLOG MONITOR). This module is the only one that loads
mysql-replication.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import QueryEvent, RotateEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from plaza.infra.mysql import driver, mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.settings import settings

READ_TIMEOUT_S = 10
MAX_BATCH_ROWS = 500  # exceeded by a larger transaction, which is never split
MAX_TRANSACTION_ROWS = 100_000
_INVALIDATING_DDL = re.compile(r"\s*(TRUNCATE|DROP|RENAME|ALTER)\b", re.IGNORECASE)

# It warns about each log file without column names, although use_column_name_cache finds them.
logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)


class BinlogOffsetLost(Exception):
    """The log file of the offset was purged, or belongs to another server."""


class BinlogUnusable(Exception):
    """Binary logging is off, or does not log whole rows."""


class BinlogOffset(NamedTuple):
    """A offset in the binlog, between two transactions."""

    log_file: str
    log_pos: int


class RowChange(NamedTuple):
    """A row before and after a change, column -> value. None before an INSERT, after a DELETE."""

    table: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(slots=True)
class ChangeBatch:
    """Changes up to ``end``. Any row of ``invalidated_tables`` may have changed.
    ``lag_s`` is the age of the last change when the deadline ended the read, else 0."""

    end: BinlogOffset
    lag_s: float = 0.0
    rows: list[RowChange] = field(default_factory=list)
    invalidated_tables: set[str] = field(default_factory=set)


def read_end() -> BinlogOffset:
    """Return the end of the binlog. Two statements. Raises MysqlDown, BinlogUnusable."""
    current: dict[str, str] = dict(
        mysql.fetch_all(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
            " ('log_bin', 'binlog_format', 'binlog_row_image')"
        )
    )
    required = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL"}
    for name, value in required.items():
        if name in current and current[name].upper() != value:
            raise BinlogUnusable(f"{name} is {current[name]}, not {value}")
    [row] = _read_status()
    return BinlogOffset(row[0], int(row[1]))


def read_changes(
    tables: Collection[str], since: BinlogOffset, deadline: Deadline
) -> Iterator[ChangeBatch]:
    """Yield the changes in ``tables`` up to the end of the binlog or until the deadline.
    The last batch may have no changes. Raises MysqlDown, BinlogOffsetLost."""
    reader = BinLogStreamReader(
        connection_settings={"read_timeout": READ_TIMEOUT_S, "connect_timeout": 2},
        pymysql_wrapper=_connect,
        server_id=2**31 + secrets.randbelow(2**31 - 1),  # a reused id ends the other's stream
        log_file=since.log_file,
        log_pos=since.log_pos,
        resume_stream=True,
        blocking=False,
        only_events=[
            WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent, QueryEvent, RotateEvent
        ],
        only_tables=list(tables),
        only_schemas=[settings().mysql.database],
        use_column_name_cache=True,
        enable_logging=False,
    )  # fmt: skip
    try:
        yield from _read_batches(reader, tables, since, deadline)
    except (pymysql.err.MySQLError, OSError) as error:
        if driver.means(error, driver.Meaning.LOG_PURGED):
            raise BinlogOffsetLost(f"{since.log_file}:{since.log_pos}: {error.args[1]}") from None
        raise MysqlDown(f"MySQL is unavailable: {type(error).__name__}") from error
    finally:
        reader.close()


def _connect(db: str | None = None, **options: Any) -> Any:
    """Connect for mysql-replication, which passes ``db``, a parameter that PyMySQL removed."""
    return mysql.connect_dedicated(database=db, **options)


def _read_batches(
    reader: Any, tables: Collection[str], since: BinlogOffset, deadline: Deadline
) -> Iterator[ChangeBatch]:
    batch = ChangeBatch(since)
    for event in reader:
        if isinstance(event, RotateEvent):
            # A server that was started again may give a table the id that another one had. The
            # library forgets ids only if the file before was closed, which a kill prevents.
            reader.table_map = {}
        elif isinstance(event, QueryEvent):
            batch.invalidated_tables |= _find_invalidated(event, tables)
        elif isinstance(event, WriteRowsEvent | UpdateRowsEvent | DeleteRowsEvent):
            if len(batch.rows) < MAX_TRANSACTION_ROWS:
                batch.rows += _decode_rows(event)
            else:
                batch.invalidated_tables.add(event.table)
            continue
        if _is_begin(event):
            continue
        batch.end = BinlogOffset(reader.log_file, reader.log_pos)
        if len(batch.rows) >= MAX_BATCH_ROWS or batch.invalidated_tables:
            yield batch
            batch = ChangeBatch(batch.end)
        if isinstance(event, XidEvent) and deadline.has_passed:
            batch.lag_s = max(0.0, clock.now_s() - event.timestamp)
            break
    else:
        batch.end = BinlogOffset(reader.log_file, reader.log_pos)
    yield batch


def _is_begin(event: Any) -> bool:
    """Return whether a transaction begins here: a read must not stop inside of it."""
    return isinstance(event, QueryEvent) and event.query.strip().upper() == "BEGIN"


def _find_invalidated(event: Any, tables: Collection[str]) -> set[str]:
    query = event.query
    if isinstance(query, bytes):
        query = query.decode(errors="replace")
    if not _INVALIDATING_DDL.match(query):
        return set()
    return {table for table in tables if re.search(rf"\b{table}\b", query)}


def _decode_rows(event: Any) -> Iterator[RowChange]:
    for row in event.rows:
        match event:
            case UpdateRowsEvent():
                yield RowChange(event.table, row["before_values"], row["after_values"])
            case WriteRowsEvent():
                yield RowChange(event.table, None, row["values"])
            case DeleteRowsEvent():
                yield RowChange(event.table, row["values"], None)


def _read_status() -> list[tuple[Any, ...]]:
    """Read the binlog status: MySQL 8.4 and MariaDB accept different names of the statement."""
    try:
        rows = mysql.fetch_all("SHOW MASTER STATUS")
    except pymysql.err.ProgrammingError as error:
        if not driver.means(error, driver.Meaning.SYNTAX):
            raise
        rows = mysql.fetch_all("SHOW BINARY LOG STATUS")
    if not rows:
        raise BinlogUnusable("binary logging is off")
    return rows
