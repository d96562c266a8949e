"""Binlog offsets in MySQL."""

from __future__ import annotations

from typing import Any

from plaza.infra.mysql import mysql
from plaza.infra.mysql.binlog import BinlogOffset
from plaza.infra.runtime.observability import record


def read(name: str) -> BinlogOffset | None:
    """Return the saved offset of ``name``, or None. Raises MysqlDown."""
    rows = mysql.fetch_all("SELECT log_file, log_pos FROM binlog_offset WHERE name = %s", (name,))
    return BinlogOffset(*rows[0]) if rows else None


def list_offsets() -> list[dict[str, Any]]:
    """Return all saved offsets. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all("SELECT name, log_file, log_pos FROM binlog_offset ORDER BY name")
    return [{"name": name, "log_file": file, "log_pos": pos} for name, file, pos in rows]


def forget_offsets() -> int:
    """Delete all offsets; return how many. The log is then read from its end on. One statement.
    Raises MysqlDown."""
    forgotten = mysql.write("DELETE FROM binlog_offset")
    record("binlog_offsets_cleared", offsets=forgotten)
    return forgotten


def list_logs() -> list[dict[str, Any]]:
    """Return the binlogs that MySQL has, the oldest first. One statement. Raises MysqlDown."""
    return [
        {"log_file": file, "bytes": int(size)}
        for file, size, *_ in mysql.fetch_all("SHOW BINARY LOGS")
    ]


def save(name: str, offset: BinlogOffset) -> None:
    """Store ``offset`` for ``name``. One statement. Raises MysqlDown."""
    mysql.write(
        """
        INSERT INTO binlog_offset (name, log_file, log_pos)
        VALUES (%s, %s, %s)
        ON DUPLICATE KEY UPDATE log_file = VALUES(log_file), log_pos = VALUES(log_pos)
        """,
        (name, *offset),
    )
