"""Unread counters in Redis beside MySQL, for the reconciliation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plaza.infra.derived.list_state import ListState
from plaza.infra.redis import redis
from plaza.infra.runtime.codec import MAX_ID
from plaza.notifications.unread import mysql_lists
from plaza.notifications.unread.model import UNREAD
from plaza.notifications.unread.redis_store import drop_unread, unread_key

__all__ = ["compare", "drop_unread", "owner_of_key"]

_KEY = re.compile(r"\{\d+\}:user:([1-9]\d{0,18}):unread", re.ASCII)


def owner_of_key(key: str) -> int | None:
    """Return the user whose unread counter is at ``key``, None for any other key."""
    match = _KEY.fullmatch(key)
    user_id = int(match[1]) if match else 0
    return user_id if 0 < user_id <= MAX_ID and unread_key(user_id) == key else None


def compare(user_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare the unread counters in Redis with MySQL, which is read after them; omit users without
    one. One round trip and one statement. Raises RedisDown, MysqlDown."""
    replies = redis.pipeline(
        [("HMGET", unread_key(user_id), "version", "value") for user_id in user_ids]
    )
    cached = {
        user_id: f"{value} @{version}"
        for user_id, (version, value) in zip(user_ids, replies, strict=True)
        if value is not None
    }
    differences = {
        user_id: f"Redis {cached[user_id]:.60}, MySQL {expected}"
        for user_id, (version, unread) in mysql_lists.read_states(cached).items()
        if cached[user_id] != (expected := f"{UNREAD.encode(unread)} @{version}")
    }
    return {
        user_id: ListState(observed[:512], differences.get(user_id, ""))
        for user_id, observed in cached.items()
    }
