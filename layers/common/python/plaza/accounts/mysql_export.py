"""Every row of MySQL that names a user, in sections, each in the order of its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from plaza.infra.mysql import mysql


class Section(NamedTuple):
    """The rows of a table about a user. The statement returns two keys, then ``columns``."""

    name: str
    columns: tuple[str, ...]
    sql: str


_CREATED_US = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at)"


def _texts(text_type: str) -> Section:
    columns = (
        "id", "parent_id", "kind", "title", "body", "images", "score", "votes", "created_at",
        "deleted_at", "edited_at", "request_id",
    )  # fmt: skip
    return Section(
        f"{text_type}s",
        columns,
        f"""
        SELECT content_id, 0, content_id, parent_id, kind, title, body, images, score, votes,
               created_at, deleted_at, edited_at, request_id
        FROM content FORCE INDEX (by_author)
        WHERE content_type = '{text_type}'
          AND author_id = %(user_id)s
          AND content_id > %(key)s
        ORDER BY content_id
        LIMIT %(limit)s
        """,
    )


def _reactions(kind: str, state: int) -> Section:
    return Section(
        f"{kind}s" if state else f"{kind}s_taken_back",
        ("target_type", "target_id", "version", "created_at", "updated_at"),
        f"""
        SELECT version, target_id, target_type, target_id, version, created_at, updated_at
        FROM reaction FORCE INDEX (by_actor)
        WHERE actor_id = %(user_id)s
          AND kind = '{kind}'
          AND state = {state:d}
          AND version >= %(key)s
          AND (version > %(key)s OR target_id > %(second_key)s)
        ORDER BY version, target_id
        LIMIT %(limit)s
        """,
    )


SECTIONS = (
    Section(
        "profile",
        ("id", "nickname", "avatar", "role", "time_zone", "latest_day", "version", "created_at"),
        """
        SELECT id, 0, id, nickname, avatar, role, time_zone, latest_day, version, created_at
        FROM user
        WHERE id = %(user_id)s
          AND id > %(key)s
        LIMIT %(limit)s
        """,
    ),
    Section(
        "phone",
        ("phone", "created_at"),
        """
        SELECT user_id, 0, phone, created_at
        FROM user_phone
        WHERE user_id = %(user_id)s
          AND user_id > %(key)s
        LIMIT %(limit)s
        """,
    ),
    Section(
        "totals",
        (
            "followers_total",
            "following_total",
            "posts_total",
            "likes_received_total",
            "collects_received_total",
        ),
        """
        SELECT user_id, 0, followers_total, following_total, posts_total, likes_received_total,
               collects_received_total
        FROM user_counter
        WHERE user_id = %(user_id)s
          AND user_id > %(key)s
        LIMIT %(limit)s
        """,
    ),
    Section(
        "sessions",
        ("created_at", "expires_at"),
        f"""
        SELECT {_CREATED_US}, 0, created_at, expires_at
        FROM session
        WHERE user_id = %(user_id)s
          AND {_CREATED_US} > %(key)s
        ORDER BY created_at
        LIMIT %(limit)s
        """,
    ),
    Section(
        "idempotency_keys",
        ("resource_type", "resource_id", "created_at"),
        f"""
        SELECT {_CREATED_US}, resource_id, resource_type, resource_id, created_at
        FROM idempotency_key
        WHERE user_id = %(user_id)s
          AND {_CREATED_US} >= %(key)s
          AND ({_CREATED_US} > %(key)s OR resource_id > %(second_key)s)
        ORDER BY created_at, resource_id
        LIMIT %(limit)s
        """,
    ),
    _texts("post"),
    _texts("comment"),
    _texts("review"),
    *(_reactions(kind, state) for kind in ("like", "collect", "follow") for state in (1, 0)),
    Section(
        "followers",
        ("user_id", "version"),
        """
        SELECT actor_id, 0, actor_id, version
        FROM reaction FORCE INDEX (PRIMARY)
        WHERE target_type = 'user'
          AND target_id = %(user_id)s
          AND kind = 'follow'
          AND state = 1
          AND actor_id > %(key)s
        ORDER BY actor_id
        LIMIT %(limit)s
        """,
    ),
    Section(
        "blocks",
        ("blocked_id", "created_at"),
        """
        SELECT blocked_id, 0, blocked_id, created_at
        FROM user_block
        WHERE blocker_id = %(user_id)s
          AND blocked_id > %(key)s
        ORDER BY blocked_id
        LIMIT %(limit)s
        """,
    ),
    Section(
        "reports",
        ("id", "target_type", "target_id", "reason", "details", "outcome", "created_at"),
        """
        SELECT id, 0, id, target_type, target_id, reason, details, outcome, created_at
        FROM report
        WHERE reporter_id = %(user_id)s
          AND id > %(key)s
        ORDER BY id
        LIMIT %(limit)s
        """,
    ),
    Section(
        "star",
        ("since",),
        """
        SELECT user_id, 0, since
        FROM star
        WHERE user_id = %(user_id)s
          AND user_id > %(key)s
        LIMIT %(limit)s
        """,
    ),
    Section(
        "orders",
        ("id", "voucher_id", "reason", "request_id", "decided_at", "used_at"),
        """
        SELECT order_id, 0, order_id, voucher_id, reason, request_id, decided_at, used_at
        FROM voucher_order
        WHERE buyer_id = %(user_id)s
          AND order_id > %(key)s
        ORDER BY order_id
        LIMIT %(limit)s
        """,
    ),
    Section(
        "archived_orders",
        ("id", "voucher_id", "reason"),
        """
        SELECT order_id, 0, order_id, voucher_id, reason
        FROM archived_order
        WHERE buyer_id = %(user_id)s
          AND order_id > %(key)s
        ORDER BY order_id
        LIMIT %(limit)s
        """,
    ),
    Section(
        "waitlists",
        ("voucher_id", "joined_at"),
        """
        SELECT voucher_id, 0, voucher_id, joined_at
        FROM waitlist_entry
        WHERE buyer_id = %(user_id)s
          AND voucher_id > %(key)s
        ORDER BY voucher_id
        LIMIT %(limit)s
        """,
    ),
    Section(
        "checkins",
        ("day", "version", "request_id", "created_at"),
        """
        SELECT TO_DAYS(day), 0, day, version, request_id, created_at
        FROM checkin
        WHERE user_id = %(user_id)s
          AND day > FROM_DAYS(%(key)s)
        ORDER BY day
        LIMIT %(limit)s
        """,
    ),
)


def read(
    section: Section, user_id: int, after: tuple[int, int], limit: int
) -> Sequence[tuple[Any, ...]]:
    """Return up to ``limit`` rows of a section past two keys. One statement. Raises MysqlDown."""
    key, second_key = after
    args = {"user_id": user_id, "key": key, "second_key": second_key, "limit": limit}
    return mysql.fetch_all(section.sql, args)
