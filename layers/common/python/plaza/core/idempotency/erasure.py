"""Delete the idempotency keys of an erased user."""

from __future__ import annotations

from plaza.core.idempotency import mysql_store
from plaza.infra.runtime.clock import Deadline


def erase(user_id: int, _: Deadline) -> int:
    """Delete the keys of a user; return how many. One statement. Safe to repeat. Raises
    MysqlDown."""
    return mysql_store.delete_of_user(user_id)
