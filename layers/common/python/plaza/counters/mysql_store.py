"""Counters in MySQL. Whoever moves them holds their rows; rows are touched in key order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pymysql.constants import ER
from pymysql.cursors import Cursor
from pymysql.err import OperationalError

from plaza.counters.model import USER_COLUMNS, ContentCounter, UserCounter
from plaza.infra import mysql, sql

CONTENT_COLUMNS = ("like_total", "collect_total", "comment_total", "follow_total")
VERSION_COLUMNS = tuple(column.replace("_total", "_version") for column in CONTENT_COLUMNS)
_VERSION_OF = dict(zip(CONTENT_COLUMNS, VERSION_COLUMNS, strict=True))


Deltas = Mapping[str, int]
_LOCKED = (ER.LOCK_WAIT_TIMEOUT, 3572)  # what MariaDB and MySQL answer to NOWAIT


def lock_content(
    cursor: Cursor, targets: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], ContentCounter]:
    """The counters of ``targets`` (sorted), made where missing and held until the commit.

    One statement; three when a counter is missing. Holding them is what makes two consumers with
    the same target take turns.
    """
    found = _lock_content(cursor, targets)
    if missing := [target for target in targets if target not in found]:
        # The type is one of ours, the id a number: nothing here comes from a client unread.
        rows = ",".join("('%s',%d)" % target for target in missing)
        # Not INSERT IGNORE: it takes shared locks on rows that exist, and two consumers that then
        # both want them exclusively are a deadlock.
        cursor.execute(
            f"""
            INSERT INTO content_counter (target_type, target_id)
            VALUES {rows}
            ON DUPLICATE KEY UPDATE target_id = content_counter.target_id
            """
        )
        found |= _lock_content(cursor, missing)
    return found


def try_lock_content(cursor: Cursor, target: tuple[str, int]) -> bool:
    """Lock the counter of a target until the commit; False when another transaction has it.

    One statement, which does not wait.
    """
    try:
        cursor.execute(
            """
            SELECT target_id
            FROM content_counter
            WHERE target_type = %s
              AND target_id = %s
            FOR UPDATE NOWAIT
            """,
            target,
        )
    except OperationalError as error:
        if error.args[0] in _LOCKED:
            return False
        raise
    return True


def _lock_content(
    cursor: Cursor, targets: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], ContentCounter]:
    found: dict[tuple[str, int], ContentCounter] = {}
    where = " OR ".join(
        f"(target_type = '{target_type}' AND target_id IN ({numbers}))"
        for target_type, numbers in sql.render_ids_by_type(targets).items()
    )
    cursor.execute(
        f"""
        SELECT {sql.concat_columns("target_type", "target_id", *CONTENT_COLUMNS, *VERSION_COLUMNS)}
        FROM content_counter FORCE INDEX (PRIMARY)
        WHERE {where}
        ORDER BY target_type, target_id FOR UPDATE
        """
    )
    for (packed,) in cursor.fetchall():
        target_type, target_id, *numbers = packed.split()
        found[target_type, int(target_id)] = read_counter([int(number) for number in numbers])
    return found


def read_counter(numbers: Sequence[int]) -> ContentCounter:
    """The counter of a row of CONTENT_COLUMNS and VERSION_COLUMNS."""
    count = len(CONTENT_COLUMNS)
    return ContentCounter(
        dict(zip(CONTENT_COLUMNS, numbers[:count], strict=True)),
        dict(zip(CONTENT_COLUMNS, numbers[count:], strict=True)),
    )


def add_to_content(
    cursor: Cursor,
    deltas: Mapping[tuple[str, int], Deltas],
    commits: Mapping[tuple[tuple[str, int], str], int] | None = None,
) -> None:
    """Move the counters of content by ``deltas`` (column -> by how much). One statement.

    The version of a total is raised for each target that names it, also when it moves by 0: by the
    number of ``commits`` of (target, column), 1 where none is given.
    """
    raised = commits or {}
    columns = [column for column in CONTENT_COLUMNS if any(column in by for by in deltas.values())]
    if not columns:
        return
    rows = ",".join(
        "('%s',%d,%s)"
        % (
            *target,
            ",".join(
                f"{int(by.get(column, 0))},{raised.get((target, column), 1) if column in by else 0}"
                for column in columns
            ),
        )
        for target, by in sorted(deltas.items())
    )
    names = [name for column in columns for name in (column, _VERSION_OF[column])]
    sums = ", ".join(f"{name} = content_counter.{name} + VALUES({name})" for name in names)
    cursor.execute(
        f"""
        INSERT INTO content_counter (target_type, target_id, {", ".join(names)})
        VALUES {rows}
        ON DUPLICATE KEY UPDATE {sums}
        """
    )


def add_to_users(cursor: Cursor, deltas: Mapping[tuple[int], Deltas]) -> None:
    """Move the counters of users by ``deltas`` (column -> by how much). One statement."""
    if not deltas:
        return
    moved = [column for column in USER_COLUMNS if any(column in by for by in deltas.values())]
    rows = ",".join(
        "(%d,%s1)" % (user_id, "".join(f"{int(by.get(column, 0))}," for column in moved))
        for (user_id,), by in sorted(deltas.items())
    )
    names = [*moved, "version"]
    sums = ", ".join(f"{name} = user_counter.{name} + VALUES({name})" for name in names)
    cursor.execute(
        f"""
        INSERT INTO user_counter (user_id, {", ".join(names)})
        VALUES {rows}
        ON DUPLICATE KEY UPDATE {sums}
        """
    )


def lock_users(cursor: Cursor, user_ids: Sequence[int]) -> dict[int, UserCounter]:
    """The counters of users (sorted), made where missing and held until the commit.

    Two statements. Whoever holds content too has taken it before.
    """
    rows = ",".join(f"({int(user_id)})" for user_id in user_ids)
    cursor.execute(
        f"""
        INSERT INTO user_counter (user_id)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE version = user_counter.version
        """
    )
    cursor.execute(f"{_select_users(user_ids)} ORDER BY user_id FOR UPDATE")
    return _users_of(cursor.fetchall())


def correct_content(cursor: Cursor, right: Mapping[tuple[str, int], ContentCounter]) -> None:
    """Set the totals and versions of content whose counters are held. One statement."""
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
        for target, counter in sorted(right.items(), key=lambda pair: pair[0])
    )
    columns = [*CONTENT_COLUMNS, *VERSION_COLUMNS]
    cursor.execute(
        f"""
        INSERT INTO content_counter (target_type, target_id, {", ".join(columns)})
        VALUES {rows}
        ON DUPLICATE KEY UPDATE {", ".join(f"{c} = VALUES({c})" for c in columns)}
        """
    )


def correct_users(cursor: Cursor, right: Mapping[int, UserCounter]) -> None:
    """Set the totals and versions of users whose counters are held. One statement."""
    rows = ",".join(
        f"({int(user_id)},{sql.render_ids(counter)})" for user_id, counter in sorted(right.items())
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
    """The totals of each of ``user_ids``. One statement. Raises MysqlDown."""
    ids = list(user_ids)
    rows = mysql.fetch_all(_select_users(ids)) if ids else []
    return {user_id: UserCounter() for user_id in ids} | _users_of(rows)


def read_users_in(cursor: Cursor, user_ids: Iterable[int]) -> dict[int, UserCounter]:
    """The same within a transaction."""
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
    found = {}
    for (packed,) in rows:
        user_id, *totals = map(int, packed.split())
        found[user_id] = UserCounter(*totals)
    return found


def read_comments(post_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """(number of comments, version) of each of ``post_ids``. One statement. Raises MysqlDown."""
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
