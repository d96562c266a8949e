"""Counters in MySQL and the rows that they count, of all or of one target or user."""

from __future__ import annotations

from collections import defaultdict

from plaza.core.counters import RecountedRows
from plaza.core.reaction_log.model import TARGET_KINDS, USER_COLUMNS, CounterKey, Scope
from plaza.core.reactions import KINDS, Target
from plaza.core.targets.types import list_owned
from plaza.infra.contexts import offers
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
    """Count active reactions, and the rows that contexts offer, by counter. Three statements at
    most, and one for each offer."""
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
    if scope.target is None:
        _count_of_users(cursor, scope, totals)
    for _, counted in offers("recounts"):
        _count_offered(cursor, scope, counted, totals)
    return totals


def _count_offered(
    cursor: Cursor, scope: Scope, counted: RecountedRows, totals: dict[CounterKey, int]
) -> None:
    target_id = scope.target.id if scope.target else None
    only_id = scope.user_id if counted.name in USER_COLUMNS else target_id
    is_other = scope.target is not None and scope.target.type != counted.target_type
    if is_other or (only_id is None and scope != Scope()):
        return
    cursor.execute(
        f"""
        SELECT id, COUNT(*)
        FROM ({counted.rows}) AS counted{"" if only_id is None else " WHERE id = %s"}
        GROUP BY id
        """,
        () if only_id is None else (only_id,),
    )
    for counted_id, total in cursor:
        totals[CounterKey(Target(counted.target_type, counted_id), counted.name)] = total


def _count_of_users(cursor: Cursor, scope: Scope, totals: dict[CounterKey, int]) -> None:
    def add(user_id: int, column: str, total: int) -> None:
        totals[CounterKey(Target("user", user_id), column)] += total

    of_owner, args = _of_user(scope, "t.owner_id")
    of_profile, _ = _of_user(scope, "target_id")
    arms = [
        f"""
        SELECT t.owner_id, r.kind, COUNT(*)
        FROM ({rows}) AS t
        JOIN reaction AS r ON r.target_type = t.type AND r.target_id = t.id
        WHERE r.state = 1
          AND t.owner_id IS NOT NULL{of_owner}
        GROUP BY t.owner_id, r.kind
        """
        for rows in list_owned()
    ]
    arms.append(
        f"""
        SELECT target_id, kind, COUNT(*)
        FROM reaction
        WHERE target_type = 'user'
          AND state = 1{of_profile}
        GROUP BY target_id, kind
        """
    )
    cursor.execute(" UNION ALL ".join(arms), args * len(arms))
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


def read_owners(cursor: Cursor, scope: Scope) -> dict[tuple[str, int], int]:
    """Return target -> owner of all targets that have one besides themselves, deleted or not; empty
    in the scope of a target. One statement."""
    if scope.target is not None:
        return {}
    of_owner, args = _of_user(scope, "owner_id")
    arms = [
        f"""
        SELECT type, id, owner_id
        FROM ({rows}) AS t
        WHERE owner_id IS NOT NULL{of_owner}
        """
        for rows in list_owned()
    ]
    cursor.execute(" UNION ALL ".join(arms), args * len(arms))
    return {(of, target_id): owner_id for of, target_id, owner_id in cursor}


def _of_target(scope: Scope, begin: str = "WHERE") -> tuple[str, tuple[object, ...]]:
    if scope.target is None:
        return "", ()
    return f" {begin} target_type = %s AND target_id = %s", tuple(scope.target)


def _of_user(scope: Scope, column: str) -> tuple[str, tuple[object, ...]]:
    return ("", ()) if scope.user_id is None else (f" AND {column} = %s", (scope.user_id,))
