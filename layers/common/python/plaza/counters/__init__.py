"""Counters: totals of content and of users, moved in the transaction of what they count.

MySQL has them; Redis has projections of them, which readers create and writers update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.counters import mysql_store, redis_store
from plaza.counters.model import USER_COLUMNS, Claim, ContentCounter, UserCounter
from plaza.counters.mysql_store import (
    add_to_content,
    add_to_users,
    correct_content,
    correct_users,
    lock_content,
    lock_users,
    read_users_in,
    try_lock_content,
)
from plaza.counters.redis_store import (
    drop_projections,
    owner_of_key,
    read_raw,
    release,
    unclaim,
    user_key,
)
from plaza.infra.projections import read_through
from plaza.infra.redis import RedisDown

__all__ = [
    "USER_COLUMNS",
    "Claim",
    "ContentCounter",
    "UserCounter",
    "add_to_content",
    "add_to_users",
    "claim",
    "correct_content",
    "correct_users",
    "drop_projections",
    "lock_content",
    "lock_users",
    "owner_of_key",
    "project_users",
    "read_comments",
    "read_raw",
    "read_users",
    "read_users_in",
    "refresh_projections",
    "release",
    "try_lock_content",
    "unclaim",
    "user_key",
]


def read_users(user_ids: Sequence[int]) -> dict[int, UserCounter]:
    """The totals of each of ``user_ids``, a second or so behind. Raises MysqlDown.

    One round trip to Redis when it has all; else one more, and one statement.
    """
    return read_through(
        user_ids, redis_store.read_users, mysql_store.read_users, redis_store.project_users
    )


def read_comments(post_ids: Sequence[int]) -> dict[int, int]:
    """How many comments each of ``post_ids`` has. Round trips and errors as of ``read_users``."""
    found = read_through(
        post_ids,
        redis_store.read_comments,
        mysql_store.read_comments,
        redis_store.project_comments,
    )
    return {post_id: total for post_id, (total, _) in found.items()}


def project_users(totals: Mapping[int, UserCounter]) -> None:
    """Tell Redis the new totals of users, where it has them. Raises RedisDown."""
    redis_store.project_users(totals, create=False)


def refresh_projections(user_ids: Sequence[int] = (), post_ids: Sequence[int] = ()) -> None:
    """Tell Redis what MySQL has of these users and posts by now. Raises MysqlDown, RedisDown."""
    project_users(mysql_store.read_users(user_ids))
    redis_store.project_comments(mysql_store.read_comments(post_ids), create=False)


def claim(user_id: int, column: str, limit: int, member: str) -> Claim | None:
    """Set one aside for ``member`` if the user's total and what is on its way stay within ``limit``.

    None: they don't. The claim holds for an hour, until it is released or taken back. Raises
    RedisDown, MysqlDown.
    """
    for _ in range(3):
        known, claimed = redis_store.claim(user_id, column, limit, member)
        if known:
            return claimed
        redis_store.project_users(mysql_store.read_users([user_id]), create=True)
    raise RedisDown("Redis does not keep what it is given")
