"""Binlog positions in MySQL."""

from __future__ import annotations

from plaza.infra.mysql import mysql
from plaza.infra.mysql.binlog import BinlogPosition


def read(name: str) -> BinlogPosition | None:
    """Return the saved position of ``name``, or None. Raises MysqlDown."""
    rows = mysql.fetch_all("SELECT log_file, log_pos FROM binlog_position WHERE name = %s", (name,))
    return BinlogPosition(*rows[0]) if rows else None


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
