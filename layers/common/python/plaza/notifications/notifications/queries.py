"""Read unread counters: from Redis, else from MySQL; and update what Redis has of them."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.derived.projections import read_through
from plaza.notifications.notifications import mysql_lists, redis_store
from plaza.notifications.notifications.model import UnreadState
from plaza.notifications.notifications.mysql_lists import read_notified_groups, read_states
from plaza.notifications.notifications.redis_store import unread_key

__all__ = [
    "read_notified_groups",
    "read_states",
    "read_unread",
    "refresh_projections",
    "unread_key",
]


def read_unread(user_id: int) -> UnreadState:
    """Return the unread counter of a user, about a second behind MySQL. One round trip; two more
    and one statement when Redis lacks it. Raises MysqlDown."""
    return read_through(
        [user_id],
        redis_store.read_all,
        mysql_lists.read_states,
        redis_store.store_read,
        announce=redis_store.announce_reads,
    )[user_id]


def refresh_projections(user_ids: Sequence[int]) -> None:
    """Update the unread counters that Redis has of these users. One statement and one round trip.
    Raises MysqlDown, RedisDown."""
    redis_store.project_all(mysql_lists.read_states(user_ids))
