"""Idempotency keys in MySQL: the primary key of ``idempotency_key`` decides."""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza.idempotency.model import IdempotentRequest, KeyReused
from plaza.infra import mysql


def find(user_id: int, request: IdempotentRequest) -> tuple[str, int] | None:
    """(type, id) of what the key of the request stands for, None for nothing. One statement.

    Raises KeyReused when something else was asked for under it; MysqlDown.
    """
    found = mysql.fetch_all(
        """
        SELECT request_sha256, resource_type, resource_id
        FROM idempotency_key
        WHERE user_id = %s
          AND key_sha256 = %s
        """,
        (user_id, request.key_sha256),
    )
    if not found:
        return None
    request_sha256, resource_type, resource_id = found[0]
    if request_sha256 != request.request_sha256:
        raise KeyReused("Take a new key for another request")
    return resource_type, resource_id


def claim(
    cursor: Cursor, user_id: int, request: IdempotentRequest, resource: tuple[str, int]
) -> bool:
    """Let the request's key stand for ``resource``; False when it stands for something already.

    Whoever has the key waits here until the one before has committed or given up.
    """
    # Not INSERT IGNORE: two that wait for one that gives up would then be a deadlock.
    return (
        cursor.execute(
            """
            INSERT INTO idempotency_key (user_id, key_sha256, request_sha256, resource_type, resource_id,
                created_at)
            VALUES (%s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE user_id = idempotency_key.user_id
            """,
            (user_id, *request, *resource),
        )
        == 1
    )


def delete_expired(limit: int) -> int:
    """Delete at most ``limit`` keys that are older than a day; how many. Raises MysqlDown."""
    return mysql.write(
        """
        DELETE FROM idempotency_key
        WHERE created_at < UTC_TIMESTAMP(6) - INTERVAL 24 HOUR
        ORDER BY created_at
        LIMIT %s
        """,
        (limit,),
    )
