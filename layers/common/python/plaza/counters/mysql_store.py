"""Counters in MySQL. A writer locks their rows, in the order of the keys. Unless stated otherwise,
a function runs one statement; without a cursor it raises MysqlDown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from plaza.counters.model import CONTENT_COLUMNS, USER_COLUMNS, ContentCounter, UserCounter
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

VERSION_COLUMNS = tuple(column.replace("_total", "_version") for column in CONTENT_COLUMNS)
_VERSION_OF = dict(zip(CONTENT_COLUMNS, VERSION_COLUMNS, strict=True))
_SORTED_OF = {
    column: column.replace("_total", "_sorted")
    for column in CONTENT_COLUMNS
    if column != "comment_total"
}
SORTED_COLUMNS = tuple(f"COALESCE({column}, 0)" for column in _SORTED_OF.values())

T = TypeVar("T")

Deltas = Mapping[str, int]
"""Column -> change of the total."""


class MissingCounters(Exception):
    """Counters that ``lock_content`` has to lock do not exist; see ``run_in_transaction``."""

    def __init__(self, targets: Sequence[tuple[str, int]]) -> None:
        super().__init__(f"{len(targets)} counters are missing")
        self.targets = targets


def run_in_transaction(work: Callable[[Cursor], T]) -> T:
    """Run ``work``, which may lock counters of content, as ``mysql.run_in_transaction`` does.

    If counters are missing, ``work`` is rolled back, and runs again after a statement of its own
    has created them. A transaction that creates a counter while it has locks on counters with
    higher keys deadlocks with one that has the lower key.
    """
    try:
        return mysql.run_in_transaction(work)
    except MissingCounters as error:
        # Safe to render: types are validated, ids are numbers.
        rows = ",".join("('%s',%d)" % target for target in sorted(error.targets))
        mysql.write(
            f"""
            INSERT INTO content_counter (target_type, target_id)
            VALUES {rows}
            ON DUPLICATE KEY UPDATE target_id = content_counter.target_id
            """
        )
        return mysql.run_in_transaction(work)


def lock_content(
    cursor: Cursor, targets: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], ContentCounter]:
    """Lock the counters of ``targets`` until the commit, which serializes the consumers of a
    target. Raises MissingCounters."""
    [rows] = mysql.read_all(cursor, [select_locked(targets)])
    return locked_of(targets, rows)


def select_locked(targets: Iterable[tuple[str, int]]) -> str:
    """Return the SELECT that locks the counters of ``targets``, for ``locked_of``."""
    # Locks in the order of the primary key, which GROUP BY reads.
    return f"""
        SELECT target_type,
               {sql.concat_rows("target_id", *CONTENT_COLUMNS, *VERSION_COLUMNS, *SORTED_COLUMNS)}
        FROM content_counter FORCE INDEX (PRIMARY)
        WHERE {_select(targets)}
        GROUP BY target_type
        ORDER BY target_type FOR UPDATE
        """


def locked_of(
    targets: Iterable[tuple[str, int]], rows: Iterable[mysql.Row]
) -> dict[tuple[str, int], ContentCounter]:
    """Return the counters of ``targets`` from the rows of ``select_locked``. Raises
    MissingCounters."""
    counters = {
        (target_type, target_id): read_counter(numbers)
        for target_type, packed in rows
        for target_id, *numbers in sql.split_rows(packed)
    }
    if missing := [target for target in targets if target not in counters]:
        raise MissingCounters(missing)
    return counters


def try_lock_content(cursor: Cursor, target: tuple[str, int]) -> bool:
    """Lock the counter of a target until the commit; False, without a wait, when it is locked."""
    return mysql.try_lock(
        cursor,
        """
        SELECT target_id
        FROM content_counter
        WHERE target_type = %s
          AND target_id = %s
        FOR UPDATE NOWAIT
        """,
        target,
    )


def _select(targets: Iterable[tuple[str, int]]) -> str:
    return " OR ".join(
        f"(target_type = '{target_type}' AND target_id IN ({numbers}))"
        for target_type, numbers in sql.render_ids_by_type(targets).items()
    )


def read_counter(numbers: Sequence[int]) -> ContentCounter:
    """Return the counter of a row with CONTENT_COLUMNS, VERSION_COLUMNS and SORTED_COLUMNS."""
    likes, collects, comments, follows, *rest = numbers
    like, collect, comment, follow, like_sorted, collect_sorted, follow_sorted = rest
    return ContentCounter(  # written out: dict(zip()) takes three times as long
        {
            "like_total": likes,
            "collect_total": collects,
            "comment_total": comments,
            "follow_total": follows,
        },
        {
            "like_total": like,
            "collect_total": collect,
            "comment_total": comment,
            "follow_total": follow,
        },
        {"like_total": like_sorted, "collect_total": collect_sorted, "follow_total": follow_sorted},
    )


def add_to_content(cursor: Cursor, deltas: Mapping[tuple[str, int], Deltas]) -> None:
    """Add ``deltas`` to the counters of content. The version of each named total is raised, also
    for a delta of 0: by its own delta, by 1 without one. A sorted list that was kept before counts
    as kept up to that version: the caller changed it."""
    columns = [column for column in CONTENT_COLUMNS if any(column in by for by in deltas.values())]
    if not columns:
        return
    row = f"('%s',%d{',%d,%d' * len(columns)})"
    pairs = [(column, _VERSION_OF[column]) for column in columns]
    rows = ",".join(
        [
            row
            % (
                *target,
                *[
                    number
                    for column, version in pairs
                    for number in (by.get(column, 0), by.get(version, column in by))
                ],
            )
            for target, by in sorted(deltas.items())
        ]
    )
    names = [name for pair in pairs for name in pair]
    sums = ", ".join(
        [
            *(
                _keep_list(column, f"content_counter.{version} + VALUES({version})")
                for column, version in pairs
                if column in _SORTED_OF
            ),
            *(f"{name} = content_counter.{name} + VALUES({name})" for name in names),
        ]
    )
    mysql.send(
        cursor,
        f"""
        INSERT INTO content_counter (target_type, target_id, {", ".join(names)})
        VALUES {rows}
        ON DUPLICATE KEY UPDATE {sums}
        """,
    )


def _keep_list(column: str, version: str) -> str:
    """Return the assignment that keeps a list at a new ``version``, an expression. It stands before
    the assignment of the version: servers assign from left to right."""
    at, before = f"content_counter.{_SORTED_OF[column]}", f"content_counter.{_VERSION_OF[column]}"
    return f"{_SORTED_OF[column]} = IF(ABS({at}) = {before}, SIGN({at}) * ({version}), {at})"


def mark_lists(
    cursor: Cursor,
    targets: Sequence[tuple[str, int]],
    column: str,
    mark: Literal["none", "filling", "complete"],
) -> None:
    """Set the state of the sorted lists of a total, as of the versions of its locked counters."""
    version = _VERSION_OF[column]
    sorted_at = {"none": "NULL", "filling": f"-{version}", "complete": version}[mark]
    mysql.send(
        cursor,
        f"""
        UPDATE content_counter
        SET {_SORTED_OF[column]} = {sorted_at}
        WHERE {_select(targets)}
        """,
    )


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
    content are locked before. Two statements."""
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


def correct_content(cursor: Cursor, correct: Mapping[tuple[str, int], ContentCounter]) -> None:
    """Set the totals and versions of content whose counters are locked."""
    rows = ",".join(
        "('%s',%d,%s)"
        % (
            *target,
            ",".join(
                str(int(numbers[column]))
                for numbers in (counter.totals, counter.versions)
                for column in CONTENT_COLUMNS
            ),
        )
        for target, counter in sorted(correct.items(), key=lambda pair: pair[0])
    )
    columns = [*CONTENT_COLUMNS, *VERSION_COLUMNS]
    changes = [_keep_list(column, f"VALUES({_VERSION_OF[column]})") for column in _SORTED_OF]
    changes += [f"{column} = VALUES({column})" for column in columns]
    cursor.execute(
        f"""
        INSERT INTO content_counter (target_type, target_id, {", ".join(columns)})
        VALUES {rows}
        ON DUPLICATE KEY UPDATE {", ".join(changes)}
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
    numbers = sql.render_ids(ids)
    rows = mysql.fetch_all(
        f"""
        SELECT target_id, comment_total, comment_version
        FROM content_counter
        WHERE target_type = 'post'
          AND target_id IN ({numbers})
        """
    )
    return dict.fromkeys(ids, (0, 0)) | {
        post_id: (total, version) for post_id, total, version in rows
    }
