"""Delete the check-ins of an erased user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from plaza.commerce.checkins import mysql_store, redis_store
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline


def erase(user_id: int, _: Deadline) -> int:
    """Delete all check-ins of a user; return how many were stored. Two statements and a round trip.
    Redis first: the rows name the months that it has. Safe to repeat. Raises MysqlDown, RedisDown.
    """
    days = mysql_store.read_days(user_id)
    today = datetime.fromtimestamp(clock.now_s(), UTC).date()
    not_stored = (today + timedelta(days=days_off) for days_off in (-31, -1, 0, 1))
    redis_store.forget(user_id, {*days, *not_stored})
    return mysql_store.delete(user_id) if days else 0
