"""Binlog positions in MySQL."""

from __future__ import annotations

from typing import Any

from plaza.infra.mysql import mysql
from plaza.infra.mysql.binlog import BinlogPosition
from plaza.infra.runtime.observability import record


def read(name: str) -> BinlogPosition | None:
    """Return the saved position of ``name``, or None. Raises MysqlDown."""
    rows = mysql.fetch_all("SELECT log_file, log_pos FROM binlog_position WHERE name = %s", (name,))
    return BinlogPosition(*rows[0]) if rows else None


def list_positions() -> list[dict[str, Any]]:
    """Return all saved positions. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all("SELECT name, log_file, log_pos FROM binlog_position ORDER BY name")
    return [{"name": name, "log_file": file, "log_pos": pos} for name, file, pos in rows]


def forget_positions() -> int:
    """Delete all positions; return how many. The log is then read from its end on. One statement.
    Raises MysqlDown."""
    forgotten = mysql.write("DELETE FROM binlog_position")
    record("binlog_positions_cleared", positions=forgotten)
    return forgotten


def list_logs() -> list[dict[str, Any]]:
    """Return the binlogs that MySQL has, the oldest first. One statement. Raises MysqlDown."""
    return [
        {"log_file": file, "bytes": int(size)}
        for file, size, *_ in mysql.fetch_all("SHOW BINARY LOGS")
    ]


def save(name: str, position: BinlogPosition) -> None:
    """Store ``position`` for ``name``. One statement. Raises MysqlDown."""
    mysql.write(
        """
        INSERT INTO binlog_position (name, log_file, log_pos)
        VALUES (%s, %s, %s)
        ON DUPLICATE KEY UPDATE log_file = VALUES(log_file), log_pos = VALUES(log_pos)
        """,
        (name, *position),
    )
