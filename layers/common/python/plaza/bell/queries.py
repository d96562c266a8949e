"""Read bells: from Redis, else from MySQL; and update what Redis has of them."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.bell import mysql_lists, redis_store
from plaza.bell.model import BellState
from plaza.bell.mysql_lists import read_rung, read_states
from plaza.bell.redis_store import bell_key
from plaza.infra.derived.projections import read_through

__all__ = ["bell_key", "read_bell", "read_rung", "read_states", "refresh_projections"]


def read_bell(user_id: int) -> BellState:
    """Return the bell of a user, about a second behind MySQL. One round trip; two more and one
    statement when Redis lacks it. Raises MysqlDown."""
    return read_through(
        [user_id],
        redis_store.read_bells,
        mysql_lists.read_states,
        redis_store.store_read_bells,
        announce=redis_store.announce_reads,
    )[user_id]


def refresh_projections(user_ids: Sequence[int]) -> None:
    """Update the bells that Redis has of these users. One statement and one round trip. Raises
    MysqlDown, RedisDown."""
    redis_store.project_bells(mysql_lists.read_states(user_ids))
