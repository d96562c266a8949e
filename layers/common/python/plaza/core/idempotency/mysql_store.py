"""Idempotency keys in MySQL, unique by the primary key of ``idempotency_key``."""

from __future__ import annotations

from plaza.core.idempotency.model import IdempotentRequest, KeyReused
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor


def find(user_id: int, request: IdempotentRequest) -> tuple[str, int] | None:
    """Return (type, id) of the resource that the key created, None for an unused key.
    One statement. Raises KeyReused if the key belongs to another request; MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT request_sha256, resource_type, resource_id
        FROM idempotency_key
        WHERE user_id = %s
          AND key_sha256 = %s
        """,
        (user_id, request.key_sha256),
    )
    if not rows:
        return None
    request_sha256, resource_type, resource_id = rows[0]
    if request_sha256 != request.request_sha256:
        raise KeyReused
    return resource_type, resource_id


def claim(
    cursor: Cursor, user_id: int, request: IdempotentRequest, resource: tuple[str, int]
) -> bool:
    """Map the request's key to ``resource``; return False if the key is already in use.
    One statement. It waits for a transaction that claims the same key to commit or roll back."""
    # Not INSERT IGNORE: if the first transaction rolls back, two that wait for it deadlock.
    return (
        cursor.execute(
            """
            INSERT INTO idempotency_key
              (user_id, key_sha256, request_sha256, resource_type, resource_id, created_at)
            VALUES (%s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE user_id = idempotency_key.user_id
            """,
            (user_id, *request, *resource),
        )
        == 1
    )


def delete_of_user(user_id: int) -> int:
    """Delete the keys of a user; return how many. One statement. Raises MysqlDown."""
    return mysql.write("DELETE FROM idempotency_key WHERE user_id = %s", (user_id,))
