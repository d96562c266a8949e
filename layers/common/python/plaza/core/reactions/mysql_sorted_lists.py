"""Sorted lists: the reactions to large targets, in the order of their versions.

``sorted_reaction`` has the rows of ``reaction`` of a target and kind again, active and inactive
ones, as far as the counter says: ``sorted_at`` is ``version`` while the list is complete, minus
``version`` while it is filled, and anything else if there is none.

Each function with a cursor runs in a transaction that has locked the counter. Unless stated
otherwise, a function runs one statement; without a cursor it raises MysqlDown.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import Target
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.codec import MAX_ID

SortedEntry = tuple[str, int, str, int, int, int]
"""A row of ``sorted_reaction``: type and id of the target, kind, state, version, actor."""


def select_rows(kind: Kind, target: Target, columns: str, conditions: str) -> tuple[str, str]:
    """Return two SELECTs of the rows of a target and kind: of its sorted list, and of ``reaction``.
    The order is the caller's. One of them returns nothing and reads no row.

    The second one reads the few rows of a small target by the primary key, then sorts.
    """
    where = f"""
        target_type = '{target.type}'
          AND target_id = {target.id:d}
          AND kind = '{kind.name}'
          AND {conditions}
        """
    is_sorted = render_is_sorted(kind, target.type, f"{target.id:d}")
    return (
        f"SELECT {columns} FROM sorted_reaction WHERE {where} AND {is_sorted}",
        f"SELECT {columns} FROM reaction WHERE {where} AND NOT {is_sorted}",
    )


def render_is_sorted(kind: Kind, target_type: str, target_id: str) -> str:
    """Return a condition: a target has a complete sorted list. ``target_id`` is a number or the
    name of an argument. Both servers evaluate it once, before they read a row."""
    return f"""
        COALESCE((
            SELECT counted.sorted_at > 0 AND counted.sorted_at = counted.version
            FROM counter AS counted
            WHERE counted.target_type = '{target_type}'
              AND counted.target_id = {target_id}
              AND counted.kind = '{kind.name}'
        ), 0)
        """


def delete_entries(cursor: Cursor, entries: Iterable[SortedEntry]) -> None:
    """Delete entries, if there are any. One write for each type of targets and kind."""
    keys: dict[tuple[str, str], list[list[int]]] = {}
    for target_type, target_id, kind, *rest in entries:
        keys.setdefault((target_type, kind), []).append([target_id, *rest])
    for (target_type, kind), of_kind in keys.items():
        mysql.send(
            cursor,
            f"""
            DELETE s
            FROM JSON_TABLE('{json.dumps(sorted(of_kind))}', '$[*]' COLUMNS (
                target_id BIGINT PATH '$[0]',
                state BIGINT PATH '$[1]',
                version BIGINT PATH '$[2]',
                actor_id BIGINT PATH '$[3]')) AS k
            STRAIGHT_JOIN sorted_reaction AS s
                ON  s.target_type = '{target_type}'
                AND s.target_id = k.target_id
                AND s.kind = '{kind}'
                AND s.state = k.state
                AND s.version = k.version
                AND s.actor_id = k.actor_id
            """,
        )


def insert_entries(cursor: Cursor, entries: Iterable[SortedEntry]) -> None:
    """Insert entries that do not exist, if there are any."""
    rows = ",".join(["('%s',%d,'%s',%d,%d,%d)" % entry for entry in sorted(entries)])
    if rows:
        mysql.send(
            cursor,
            f"""
            INSERT IGNORE INTO sorted_reaction
                (target_type, target_id, kind, state, version, actor_id)
            VALUES {rows}
            """,
        )


def clear(cursor: Cursor, kind: Kind, target: Target, limit: int) -> int:
    """Delete up to ``limit`` entries of a target and kind; return how many there were."""
    return cursor.execute(
        f"""
        DELETE FROM sorted_reaction
        WHERE target_type = %s
          AND target_id = %s
          AND kind = %s
        LIMIT {limit:d}
        """,
        (*target, kind.name),
    )


def find_last_actor(
    cursor: Cursor, kind: Kind, target: Target, after_id: int, limit: int
) -> int | None:
    """Return the last of the next ``limit`` actors of a target, None if there are fewer."""
    count = cursor.execute(
        f"""
        SELECT actor_id
        FROM reaction FORCE INDEX (PRIMARY)
        WHERE target_type = %s
          AND target_id = %s
          AND kind = %s
          AND actor_id > %s
        ORDER BY actor_id LIMIT 1 OFFSET {limit - 1:d}
        """,
        (*target, kind.name, after_id),
    )
    return int(cursor.fetchall()[0][0]) if count else None


def copy_rows(
    cursor: Cursor, kind: Kind, target: Target, after_id: int, last_id: int | None
) -> None:
    """Insert entries for the rows of the actors up to ``last_id``, None for all."""
    cursor.execute(
        f"""
        INSERT IGNORE INTO sorted_reaction (target_type, target_id, kind, state, version, actor_id)
        SELECT target_type, target_id, kind, state, version, actor_id
        FROM reaction FORCE INDEX (PRIMARY)
        WHERE target_type = %s
          AND target_id = %s
          AND kind = %s
          AND actor_id BETWEEN {after_id + 1:d} AND {MAX_ID if last_id is None else last_id:d}
        """,
        (*target, kind.name),
    )


def find_range_end(target_type: str, after_id: int, counters: int) -> int:
    """Return the last id of the next range of about ``counters`` counters."""
    next_rows = mysql.fetch_all(
        f"""
        SELECT target_id
        FROM counter FORCE INDEX (PRIMARY)
        WHERE target_type = %s
          AND target_id > %s
        ORDER BY target_id LIMIT 1 OFFSET {counters:d}
        """,
        (target_type, after_id),
    )
    return int(next_rows[0][0]) if next_rows else MAX_ID


def find_unsorted(
    target_type: str, after_id: int, last_id: int, min_total: int
) -> list[tuple[Kind, Target]]:
    """Return (kind, target) of a range that have at least ``min_total`` active actors and no
    complete sorted list, in the order of their ids."""
    rows = mysql.fetch_all(
        f"""
        SELECT target_id, kind
        FROM counter FORCE INDEX (PRIMARY)
        WHERE target_type = '{target_type}'
          AND target_id BETWEEN {after_id + 1:d} AND {last_id:d}
          AND kind IN ({_kinds_of(target_type)})
          AND total >= {min_total:d}
          AND NOT (sorted_at > 0 AND sorted_at = version)
        """
    )
    return [(KINDS[name], Target(target_type, target_id)) for target_id, name in sorted(rows)]


def find_differing(target_type: str, after_id: int, last_id: int) -> list[tuple[Kind, Target]]:
    """Return (kind, target) of a range whose complete sorted list has other entries than
    ``reaction`` has rows."""
    arms = [
        f"""
        SELECT c.kind, c.target_id, COUNT(*),
               SUM(CRC32(CONCAT_WS(' ', r.actor_id, r.state, r.version)))
        FROM counter AS c FORCE INDEX (PRIMARY)
        STRAIGHT_JOIN {table} AS r FORCE INDEX (PRIMARY)
            ON  r.target_type = c.target_type
            AND r.target_id = c.target_id
            AND r.kind = c.kind
        WHERE c.target_type = '{target_type}'
          AND c.target_id BETWEEN {after_id + 1:d} AND {last_id:d}
          AND c.kind IN ({_kinds_of(target_type)})
          AND c.sorted_at > 0
          AND c.sorted_at = c.version
        GROUP BY c.kind, c.target_id
        """
        for table in ("reaction", "sorted_reaction")
    ]
    sums = Counter(mysql.fetch_all(" UNION ALL ".join(arms)))
    # A sum that both tables have appears twice.
    differing = {(name, target_id) for (name, target_id, *_), n in sums.items() if n != 2}
    return [(KINDS[name], Target(target_type, target_id)) for name, target_id in sorted(differing)]


def _kinds_of(target_type: str) -> str:
    return ", ".join(f"'{kind.name}'" for kind in KINDS.values() if target_type in kind.targets)
