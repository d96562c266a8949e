"""Counters: totals of targets and of users, changed in the transaction of the counted rows.

MySQL stores them. Redis has projections of them, which readers create and writers update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.core.counters import mysql_store, redis_store
from plaza.core.counters.model import (
    COMMENT,
    USER_COLUMNS,
    USER_COUNTER,
    CounterDelta,
    CounterKey,
    Hold,
    RecountedRows,
    TargetCounter,
    UserCounter,
)
from plaza.core.counters.mysql_store import (
    add_to_targets,
    add_to_users,
    correct_targets,
    correct_users,
    lock_targets,
    lock_users,
    locked_of,
    mark_lists,
    read_totals,
    read_users_in,
    run_in_transaction,
    select_locked,
    try_lock_target,
)
from plaza.core.counters.redis_store import (
    cancel_hold,
    comments_key,
    drop_projections,
    find_cached_users,
    owner_of_key,
    read_raw,
    release,
    user_key,
)
from plaza.infra.derived.projections import read_through
from plaza.infra.redis import redis
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.errors import RedisDown

__all__ = [
    "COMMENT",
    "USER_COLUMNS",
    "USER_COUNTER",
    "CounterDelta",
    "CounterKey",
    "Hold",
    "RecountedRows",
    "TargetCounter",
    "UserCounter",
    "add_to_targets",
    "add_to_users",
    "cancel_hold",
    "comments_key",
    "correct_targets",
    "correct_users",
    "drop_projections",
    "find_cached_users",
    "hold",
    "lock_targets",
    "lock_users",
    "locked_of",
    "mark_lists",
    "owner_of_key",
    "project_users",
    "read_comments",
    "read_raw",
    "read_totals",
    "read_users",
    "read_users_in",
    "refresh_projections",
    "release",
    "run_in_transaction",
    "select_locked",
    "try_lock_target",
    "user_key",
]


def read_users(user_ids: Sequence[int]) -> dict[int, UserCounter]:
    """Return the totals of each of ``user_ids``, about a second behind MySQL. One round trip; two
    more and one statement when a projection is missing. Raises MysqlDown."""
    return read_through(
        user_ids,
        redis_store.read_users,
        mysql_store.read_users,
        redis_store.store_read_users,
        announce=redis_store.announce_reads,
    )


def read_comments(post_ids: Sequence[int], source: RunAll = redis.run_all) -> dict[int, int]:
    """Return the number of comments of each post. One round trip; one more and one statement when
    a projection is missing. Raises MysqlDown."""
    totals = read_through(
        post_ids,
        lambda ids: redis_store.read_comments(ids, source),
        mysql_store.read_comments,
        redis_store.project_comments,
    )
    return {post_id: total for post_id, (total, _) in totals.items()}


def project_users(totals: Mapping[int, UserCounter]) -> None:
    """Update the totals that Redis has of these users. Raises RedisDown."""
    redis_store.project_users(totals)


def refresh_projections(user_ids: Sequence[int] = (), post_ids: Sequence[int] = ()) -> None:
    """Update the projections of these users and posts from MySQL. Raises MysqlDown, RedisDown."""
    project_users(mysql_store.read_users(user_ids))
    redis_store.project_comments(mysql_store.read_comments(post_ids), create=False)


def hold(user_id: int, column: str, limit: int, member: str) -> Hold | None:
    """Reserve a slot below ``limit`` of the total ``column`` for ``member``; None at the limit.

    A hold ends after one hour, or when it is released or taken back. One round trip; three more
    and one statement when Redis has no totals of the user. Raises RedisDown, MysqlDown.
    """
    for _ in range(3):
        is_loaded, held = redis_store.hold(user_id, column, limit, member)
        if is_loaded:
            return held
        announced = redis_store.announce_reads([user_id])
        redis_store.store_read_users(mysql_store.read_users([user_id]), announced)
    raise RedisDown("Redis lost the projection after each write")
