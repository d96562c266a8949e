"""Counters in MySQL and the rows that they count, of all or of one target or user."""

from __future__ import annotations

from collections import defaultdict

from plaza.core.counters import COMMENT
from plaza.core.reaction_log.model import POSTS, TARGET_KINDS, USER_COLUMNS, CounterKey, Scope
from plaza.core.reactions import KINDS, Target
from plaza.infra.mysql.mysql import Cursor


def read_counters(cursor: Cursor, scope: Scope) -> dict[CounterKey, int]:
    """Return the counters of ``scope``. Two statements at most."""
    counters: dict[CounterKey, int] = {}
    if scope.user_id is None:
        where, args = _of_target(scope)
        cursor.execute(
            f"""
            SELECT target_type, target_id, kind, total
            FROM counter{where}
            """,
            args,
        )
        for of, target_id, kind, total in cursor:
            if kind in TARGET_KINDS:
                counters[CounterKey(Target(of, target_id), kind)] = total
    if scope.target is None:
        where, args = _of_user(scope, "user_id")
        cursor.execute(
            f"SELECT user_id, {', '.join(USER_COLUMNS)} FROM user_counter WHERE TRUE{where}", args
        )
        for user_id, *totals in cursor:
            user = Target("user", user_id)
            for column, total in zip(USER_COLUMNS, totals, strict=True):
                counters[CounterKey(user, column)] = total
    return counters


def count_rows(cursor: Cursor, scope: Scope) -> dict[CounterKey, int]:
    """Count active reactions and live content, by counter. Five statements at most."""
    totals: dict[CounterKey, int] = defaultdict(int)
    if scope.user_id is None:
        where, args = _of_target(scope, "AND")
        cursor.execute(
            f"""
            SELECT target_type, target_id, kind, COUNT(*)
            FROM reaction FORCE INDEX (PRIMARY)
            WHERE state = 1{where}
            GROUP BY target_type, target_id, kind
            """,
            args,
        )
        for of, target_id, kind, total in cursor:
            if kind in KINDS:
                totals[CounterKey(Target(of, target_id), kind)] = total
        of_post = "" if scope.target is None else " AND parent_id = %s AND %s = 'post'"
        cursor.execute(
            f"""
            SELECT parent_id, COUNT(*)
            FROM content
            WHERE content_type = 'comment'
              AND deleted_at IS NULL
              AND parent_id IS NOT NULL{of_post}
            GROUP BY parent_id
            """,
            () if scope.target is None else (scope.target.id, scope.target.type),
        )
        for post_id, total in cursor:
            totals[CounterKey(Target("post", post_id), COMMENT)] = total
    if scope.target is None:
        _count_of_users(cursor, scope, totals)
    return totals


def _count_of_users(cursor: Cursor, scope: Scope, totals: dict[CounterKey, int]) -> None:
    def add(user_id: int, column: str, total: int) -> None:
        totals[CounterKey(Target("user", user_id), column)] += total

    of_content, args = _of_user(scope, "c.author_id")
    of_external, _ = _of_user(scope, "t.owner_id")
    of_profile, _ = _of_user(scope, "target_id")
    cursor.execute(
        f"""
        SELECT c.author_id, r.kind, COUNT(*)
        FROM content AS c
        JOIN reaction AS r ON r.target_type = c.content_type AND r.target_id = c.content_id
        WHERE r.state = 1{of_content}
        GROUP BY c.author_id, r.kind
        UNION ALL
        SELECT t.owner_id, r.kind, COUNT(*)
        FROM external_target AS t
        JOIN reaction AS r ON r.target_type = t.type AND r.target_id = t.id
        WHERE r.state = 1
          AND t.owner_id IS NOT NULL{of_external}
        GROUP BY t.owner_id, r.kind
        UNION ALL
        SELECT target_id, kind, COUNT(*)
        FROM reaction
        WHERE target_type = 'user'
          AND state = 1{of_profile}
        GROUP BY target_id, kind
        """,
        args * 3,
    )
    for user_id, kind, total in cursor:
        if kind in KINDS and (received := KINDS[kind].received):
            add(user_id, received, total)
    where, args = _of_user(scope, "actor_id")
    cursor.execute(
        f"""
        SELECT actor_id, kind, COUNT(*)
        FROM reaction
        WHERE state = 1{where}
        GROUP BY actor_id, kind
        """,
        args,
    )
    for user_id, name, total in cursor:
        if name in KINDS and (given := KINDS[name].given):
            add(user_id, given, total)
    where, args = _of_user(scope, "author_id")
    cursor.execute(
        f"""
        SELECT author_id, COUNT(*)
        FROM content
        WHERE content_type = 'post'
          AND deleted_at IS NULL{where}
        GROUP BY author_id
        """,
        args,
    )
    for user_id, total in cursor:
        add(user_id, POSTS, total)


def read_authors(cursor: Cursor, scope: Scope) -> dict[tuple[str, int], int]:
    """Return (type, id) -> author of content or owner of a target of the app, deleted or not; empty
    in the scope of a target."""
    if scope.target is not None:
        return {}
    where, args = _of_user(scope, "author_id")
    owned, _ = _of_user(scope, "owner_id")
    cursor.execute(
        f"""
        SELECT content_type, content_id, author_id
        FROM content
        WHERE TRUE{where}
        UNION ALL
        SELECT type, id, owner_id
        FROM external_target
        WHERE owner_id IS NOT NULL{owned}
        """,
        args * 2,
    )
    return {(of, content_id): author_id for of, content_id, author_id in cursor}


def _of_target(scope: Scope, begin: str = "WHERE") -> tuple[str, tuple[object, ...]]:
    if scope.target is None:
        return "", ()
    return f" {begin} target_type = %s AND target_id = %s", tuple(scope.target)


def _of_user(scope: Scope, column: str) -> tuple[str, tuple[object, ...]]:
    return ("", ()) if scope.user_id is None else (f" AND {column} = %s", (scope.user_id,))
