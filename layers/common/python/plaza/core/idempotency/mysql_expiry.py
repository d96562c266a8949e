"""Deletion of expired idempotency keys, which requests do not load."""

from __future__ import annotations

from plaza.infra.jobs.expiry import Expiry
from plaza.infra.mysql import mysql


def delete_expired(limit: int) -> int:
    """Delete up to ``limit`` keys older than 24 hours; return how many. Raises MysqlDown."""
    return mysql.write(
        """
        DELETE FROM idempotency_key
        WHERE created_at < UTC_TIMESTAMP(6) - INTERVAL 24 HOUR
        ORDER BY created_at
        LIMIT %s
        """,
        (limit,),
    )


EXPIRY = Expiry("idempotency_key", delete_expired)
