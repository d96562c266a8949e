"""Counters in MySQL. A writer locks their rows, in the order of the keys. Unless stated otherwise,
a function runs one statement; without a cursor it raises MysqlDown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from plaza.core.counters.model import (
    COMMENT,
    USER_COLUMNS,
    CounterDelta,
    CounterKey,
    TargetCounter,
    UserCounter,
)
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

T = TypeVar("T")

Deltas = Mapping[str, int]
"""Column -> change of the total."""

REMAINS = """
EXISTS (
  SELECT 1
  FROM counter
  WHERE target_type = 'user'
    AND target_id = {user_id}
    AND total > 0
)
"""
"""Whether an erased user has followers again."""


class MissingCounters(Exception):
    """Counters that ``lock_targets`` has to lock do not exist; see ``run_in_transaction``."""

    def __init__(self, keys: Sequence[CounterKey]) -> None:
        super().__init__(f"{len(keys)} counters are missing")
        self.keys = keys


def run_in_transaction(work: Callable[[Cursor], T]) -> T:
    """Run ``work``, which may lock counters of targets, as ``mysql.run_in_transaction`` does.

    If counters are missing, ``work`` is rolled back, and runs again after a statement of its own
    has created them. A transaction that creates a counter while it has locks on counters with
    higher keys deadlocks with one that has the lower key.
    """
    try:
        return mysql.run_in_transaction(work)
    except MissingCounters as error:
        # Safe to render: types and kinds are validated, ids are numbers.
        rows = ",".join("('%s',%d,'%s')" % key for key in sorted(error.keys))
        mysql.write(
            f"""
            INSERT INTO counter (target_type, target_id, kind)
            VALUES {rows}
            ON DUPLICATE KEY UPDATE target_id = counter.target_id
            """
        )
        return mysql.run_in_transaction(work)


def lock_targets(cursor: Cursor, keys: Collection[CounterKey]) -> dict[CounterKey, TargetCounter]:
    """Lock counters of targets until the commit, which serializes the consumers of a target and
    kind. Raises MissingCounters."""
    [rows] = mysql.read_all(cursor, [select_locked(keys)])
    return locked_of(keys, rows)


def select_locked(keys: Iterable[CounterKey]) -> str:
    """Return the SELECT that locks the counters of ``keys``, for ``locked_of``."""
    # Locks in the order of the primary key, by which rows are read.
    return f"""
        SELECT target_type, kind, {sql.concat_rows("target_id", "total", "version", "sorted_at")}
        FROM counter FORCE INDEX (PRIMARY)
        WHERE {_select(keys)}
        GROUP BY target_type, kind FOR UPDATE
        """


def locked_of(
    keys: Iterable[CounterKey], rows: Iterable[mysql.Row]
) -> dict[CounterKey, TargetCounter]:
    """Return the counters of ``keys`` from the rows of ``select_locked``. Raises
    MissingCounters."""
    counters = {
        (target_type, target_id, kind): TargetCounter(*numbers)
        for target_type, kind, packed in rows
        for target_id, *numbers in sql.split_rows(packed)
    }
    if missing := [key for key in keys if key not in counters]:
        raise MissingCounters(missing)
    return counters


def read_totals(cursor: Cursor, keys: Collection[CounterKey]) -> dict[CounterKey, int]:
    """Return the totals of the counters of ``keys`` that exist. One statement, none without
    ``keys``."""
    if not keys:
        return {}
    cursor.execute(f"SELECT target_type, target_id, kind, total FROM counter WHERE {_select(keys)}")
    return {(of, target_id, kind): total for of, target_id, kind, total in cursor.fetchall()}


def try_lock_target(cursor: Cursor, key: CounterKey) -> bool:
    """Lock a counter until the commit; False, without a wait, when it is locked."""
    return mysql.try_lock(
        cursor,
        """
        SELECT target_id
        FROM counter
        WHERE target_type = %s
          AND target_id = %s
          AND kind = %s
        FOR UPDATE NOWAIT
        """,
        key,
    )


def _select(keys: Iterable[CounterKey]) -> str:
    ids: dict[tuple[str, str], list[int]] = {}
    for target_type, target_id, kind in keys:
        ids.setdefault((target_type, kind), []).append(target_id)
    return " OR ".join(
        f"(target_type = '{target_type}' AND kind = '{kind}'"
        f" AND target_id IN ({sql.render_ids(of_kind)}))"
        for (target_type, kind), of_kind in ids.items()
    )


def add_to_targets(cursor: Cursor, deltas: Mapping[CounterKey, CounterDelta]) -> None:
    """Add ``deltas`` to the counters of targets. A sorted list that was kept before counts as kept
    up to the new version: the caller changed it."""
    if not deltas:
        return
    rows = ",".join(
        [
            "('%s',%d,'%s',%d,%d,%s)" % (*key, total, version, total if is_ranked else "NULL")
            for key, (total, version, is_ranked) in sorted(deltas.items())
        ]
    )
    # Servers assign from left to right: the list and the ranked total read both numbers of before.
    mysql.send(
        cursor,
        f"""
        INSERT INTO counter (target_type, target_id, kind, total, version, ranked)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE
            {_keep_list("counter.version + VALUES(version)")},
            ranked = counter.total + VALUES(ranked),
            total = counter.total + VALUES(total),
            version = counter.version + VALUES(version)
        """,
    )


def _keep_list(version: str) -> str:
    """Return the assignment that keeps a list at a new ``version``, an expression."""
    return f"""sorted_at = IF(ABS(counter.sorted_at) = counter.version,
                SIGN(counter.sorted_at) * ({version}), counter.sorted_at)"""


def mark_lists(
    cursor: Cursor, keys: Iterable[CounterKey], mark: Literal["none", "filling", "complete"]
) -> None:
    """Set the state of sorted lists, as of the versions of their locked counters."""
    sorted_at = {"none": "0", "filling": "-version", "complete": "version"}[mark]
    mysql.send(cursor, f"UPDATE counter SET sorted_at = {sorted_at} WHERE {_select(keys)}")


def add_to_users(cursor: Cursor, deltas: Mapping[tuple[int], Deltas]) -> None:
    """Add ``deltas`` to the counters of users."""
    if not deltas:
        return
    changed = [column for column in USER_COLUMNS if any(column in by for by in deltas.values())]
    row = f"(%d{',%d' * len(changed)},1)"
    rows = ",".join(
        [
            row % (*user, *[by.get(column, 0) for column in changed])
            for user, by in sorted(deltas.items())
        ]
    )
    names = [*changed, "version"]
    sums = ", ".join(f"{name} = user_counter.{name} + VALUES({name})" for name in names)
    mysql.send(
        cursor,
        f"""
        INSERT INTO user_counter (user_id, {", ".join(names)})
        VALUES {rows}
        ON DUPLICATE KEY UPDATE {sums}
        """,
    )


def lock_users(cursor: Cursor, user_ids: Sequence[int]) -> dict[int, UserCounter]:
    """Lock the counters of users (sorted) until the commit; create the missing ones. Counters of
    targets are locked before. Two statements."""
    rows = ",".join(f"({int(user_id)})" for user_id in user_ids)
    cursor.execute(
        f"""
        INSERT INTO user_counter (user_id)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE version = user_counter.version
        """
    )
    cursor.execute(_select_users(user_ids))
    return _users_of(cursor.fetchall())


def correct_targets(
    cursor: Cursor, correct: Mapping[CounterKey, TargetCounter], ranked: Collection[CounterKey]
) -> None:
    """Set the totals and versions of targets whose counters are locked; ``ranked``: those that
    rankings read."""
    rows = ",".join(
        "('%s',%d,'%s',%d,%d,%s)"
        % (*key, counter.total, counter.version, counter.total if key in ranked else "NULL")
        for key, counter in sorted(correct.items())
    )
    cursor.execute(
        f"""
        INSERT INTO counter (target_type, target_id, kind, total, version, ranked)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE
            {_keep_list("VALUES(version)")},
            ranked = VALUES(ranked), total = VALUES(total), version = VALUES(version)
        """
    )


def correct_users(cursor: Cursor, correct: Mapping[int, UserCounter]) -> None:
    """Set the totals and versions of users whose counters are locked."""
    rows = ",".join(
        f"({int(user_id)},{sql.render_ids(counter)})"
        for user_id, counter in sorted(correct.items())
    )
    columns = [*USER_COLUMNS, "version"]
    cursor.execute(
        f"""
        INSERT INTO user_counter (user_id, {", ".join(columns)})
        VALUES {rows}
        ON DUPLICATE KEY UPDATE {", ".join(f"{c} = VALUES({c})" for c in columns)}
        """
    )


def read_users(user_ids: Iterable[int]) -> dict[int, UserCounter]:
    """Return the totals of each of ``user_ids``."""
    ids = list(user_ids)
    rows = mysql.fetch_all(_select_users(ids)) if ids else []
    return {user_id: UserCounter() for user_id in ids} | _users_of(rows)


def read_users_in(cursor: Cursor, user_ids: Iterable[int]) -> dict[int, UserCounter]:
    """Return the totals of each of ``user_ids`` within a transaction."""
    ids = list(user_ids)
    if not ids:
        return {}
    cursor.execute(_select_users(ids))
    return {user_id: UserCounter() for user_id in ids} | _users_of(cursor.fetchall())


def _select_users(user_ids: Iterable[int]) -> str:
    numbers = sql.render_ids(user_ids)
    packed = sql.concat_columns("user_id", *USER_COLUMNS, "version")
    return f"SELECT {packed} FROM user_counter WHERE user_id IN ({numbers})"


def _users_of(rows: Iterable[tuple[str]]) -> dict[int, UserCounter]:
    counters = {}
    for (packed,) in rows:
        user_id, *totals = map(int, packed.split())
        counters[user_id] = UserCounter(*totals)
    return counters


def read_comments(post_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return (comments, version) of each of ``post_ids``."""
    ids = list(post_ids)
    if not ids:
        return {}
    rows = mysql.fetch_all(
        f"""
        SELECT target_id, total, version
        FROM counter
        WHERE {_select(("post", post_id, COMMENT) for post_id in ids)}
        """
    )
    return dict.fromkeys(ids, (0, 0)) | {
        post_id: (total, version) for post_id, total, version in rows
    }
