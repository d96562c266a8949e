"""Rows that are of no use after a time, and how they go: in small steps, oldest first."""

from __future__ import annotations

import time

from plaza.infra import mysql
from plaza.infra.observability import record

MOST_S = 40
CHUNK = 1_000  # rows of one statement: its locks are held for milliseconds

_DELETES = {
    "session": """
    DELETE FROM session
    WHERE expires_at < UTC_TIMESTAMP(6)
    ORDER BY expires_at LIMIT %s
    """,
    "creation": """
    DELETE FROM creation
    WHERE created_at < UTC_TIMESTAMP(6) - INTERVAL 24 HOUR
    ORDER BY created_at LIMIT %s
    """,
}


def delete_expired(most_s: float = MOST_S) -> dict[str, int]:
    """Delete what expired, for about ``most_s``; how many rows of each table. Raises MysqlDown."""
    until_s = time.monotonic() + most_s
    deleted = {table: _delete(sql, until_s) for table, sql in _DELETES.items()}
    metrics = {
        "sessions_deleted": deleted["session"],
        "creations_deleted": deleted["creation"],
    }
    record("expired_deleted", metrics)
    return deleted


def _delete(sql: str, until_s: float) -> int:
    deleted, last = 0, CHUNK
    while last == CHUNK and time.monotonic() < until_s:
        last = mysql.write(sql, (CHUNK,))
        deleted += last
    return deleted
