"""Idempotency keys in MySQL: the primary key of ``creation`` decides."""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza.idempotency.idempotency import Attempt, KeyReused
from plaza.infra import mysql


def find(user_id: int, attempt: Attempt) -> tuple[str, int] | None:
    """(type, id) of what the key of the attempt stands for, None for nothing. One statement.

    Raises KeyReused when something else was asked for under it; MysqlDown.
    """
    found = mysql.fetch_all(
        """
        SELECT request_sha256, content_type, content_id
        FROM creation
        WHERE user_id = %s
          AND key_sha256 = %s
        """,
        (user_id, attempt.key_sha256),
    )
    if not found:
        return None
    request_sha256, made_type, made_id = found[0]
    if request_sha256 != attempt.request_sha256:
        raise KeyReused("Take a new key for another request")
    return made_type, made_id


def claim(cursor: Cursor, user_id: int, attempt: Attempt, made: tuple[str, int]) -> bool:
    """Let the attempt's key stand for ``made``; False when it stands for something already.

    Whoever has the key waits here until the one before has committed or given up.
    """
    # Not INSERT IGNORE: two that wait for one that gives up would then be a deadlock.
    return (
        cursor.execute(
            """
            INSERT INTO creation (user_id, key_sha256, request_sha256, content_type, content_id,
                created_at)
            VALUES (%s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE user_id = creation.user_id
            """,
            (user_id, *attempt, *made),
        )
        == 1
    )


def delete_expired(limit: int) -> int:
    """Delete at most ``limit`` keys that are older than a day; how many. Raises MysqlDown."""
    return mysql.write(
        """
        DELETE FROM creation
        WHERE created_at < UTC_TIMESTAMP(6) - INTERVAL 24 HOUR
        ORDER BY created_at
        LIMIT %s
        """,
        (limit,),
    )
