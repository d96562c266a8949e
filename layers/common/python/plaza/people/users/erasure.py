"""Delete the profile, the phone and the identity of an erased user."""

from __future__ import annotations

from plaza.core import counters
from plaza.core.targets import markers
from plaza.infra.runtime.clock import Deadline
from plaza.people.users import mysql_users, redis_store


def erase(user_id: int, _: Deadline) -> int:
    """Delete a user; return how many rows it had. The phone or the identity may
    sign up again and gets another user. One transaction and three round trips. Safe to repeat.
    Raises MysqlDown, RedisDown."""
    deleted = mysql_users.delete(user_id)
    hide(user_id)
    return deleted


def hide(user_id: int) -> None:
    """Drop a user who is not in MySQL from Redis. Three round trips. Raises RedisDown."""
    redis_store.drop(user_id)
    counters.drop_projections([("user", user_id)])
    markers.mark_missing([("user", user_id)])
