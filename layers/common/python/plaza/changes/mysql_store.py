"""How far the binlog was followed, kept in MySQL beside what it tells of."""

from __future__ import annotations

from plaza.infra import mysql
from plaza.infra.binlog import BinlogPosition


def read(name: str) -> BinlogPosition | None:
    """Up to where ``name`` followed it. Raises MysqlDown."""
    found = mysql.fetch_all(
        "SELECT log_file, log_pos FROM binlog_position WHERE name = %s", (name,)
    )
    return BinlogPosition(*found[0]) if found else None


def save(name: str, position: BinlogPosition) -> None:
    """``name`` followed it up to here. Raises MysqlDown."""
    mysql.write(
        """
        INSERT INTO binlog_position (name, log_file, log_pos)
        VALUES (%s, %s, %s)
        ON DUPLICATE KEY UPDATE log_file = VALUES(log_file), log_pos = VALUES(log_pos)
        """,
        (name, *position),
    )
