"""Delete the blocks of an erased user."""

from __future__ import annotations

from plaza.infra.runtime.clock import Deadline
from plaza.people.blocks import mysql_store, redis_store


def erase(user_id: int, _: Deadline) -> int:
    """Delete the blocks that a user made; return how many. Blocks of the user by others stay. One
    statement and one round trip. Safe to repeat. Raises MysqlDown, RedisDown."""
    deleted = mysql_store.delete_of_user(user_id)
    redis_store.delete(user_id)
    return deleted
