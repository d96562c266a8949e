"""Count what unread counters and groups must be. A group changes in the transaction of its rows, so
one SELECT that reads both is exact even during writes. Each function runs one statement; without a
cursor it raises MysqlDown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plaza.infra.contexts import offers
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import GroupKey
from plaza.notifications.notifications.mysql_lists import TOTAL_ROWS

_JOIN_REACTIONS = """
    LEFT JOIN reaction AS r FORCE INDEX (PRIMARY)
        ON  r.target_type = g.subject_type
        AND r.target_id = g.subject_id
        AND r.kind = g.kind
        AND r.state = 1
    """


class SizedGroup(NamedTuple):
    """A group, whether it is open or has something fresh, about how many rows it counts, and by how
    much its sequences exceed the one of its unread counter."""

    key: GroupKey
    is_new: bool
    rows: int
    excess: int


class CountedGroup(NamedTuple):
    """The columns of a group, and the numbers of its rows."""

    key: GroupKey
    fresh: int
    fresh_after: int
    is_open: bool
    counted: int
    counted_after: int

    @property
    def is_right(self) -> bool:
        return (self.fresh, self.fresh_after) == (self.counted, self.counted_after) and (
            self.is_open or not self.fresh
        )


class CountedUnread(NamedTuple):
    """The columns of an unread counter, the number of its groups with something fresh, and of its
    user's blocks."""

    user_id: int
    unread: int
    counted: int
    blocking: int
    blocks: int


def read_groups(after_id: int, limit: int) -> list[SizedGroup]:
    """Return the next groups of the users that follow an id, by user."""
    return _read_sized(f"g.user_id > {after_id:d}", "g.user_id", limit)


def sample_groups(user_id: int, limit: int) -> list[SizedGroup]:
    """Return groups of a user, chosen at random."""
    return _read_sized(f"g.user_id = {user_id:d}", "RAND()", limit)


def _read_sized(where: str, order: str, limit: int) -> list[SizedGroup]:
    rows = mysql.fetch_all(
        f"""
        SELECT g.user_id, g.kind, g.subject_type, g.subject_id, g.is_open = 1 OR g.fresh <> 0,
               {TOTAL_ROWS}, GREATEST(0, g.sequence - b.sequence)
        FROM (
            SELECT user_id, kind, subject_type, subject_id, is_open, fresh,
                   GREATEST(changed, read_sequence, shown_sequence) AS sequence
            FROM notification_group AS g FORCE INDEX (PRIMARY)
            WHERE {where}
            ORDER BY {order} LIMIT {limit:d}
        ) AS g
        JOIN unread_counter AS b ON b.user_id = g.user_id
        ORDER BY g.user_id
        """
    )
    return [SizedGroup(GroupKey(*row[:4]), row[4] == 1, int(row[5]), row[6]) for row in rows]


def count_groups(keys: Iterable[GroupKey], cursor: Cursor | None = None) -> list[CountedGroup]:
    """Return the groups that exist, with the numbers of their rows."""
    listed = list(keys)
    if not listed:
        return []
    columns = """
        g.fresh, g.fresh_after, g.is_open,
        COALESCE(SUM(r.notified_sequence > g.read_sequence), 0),
        COALESCE(SUM(r.notified_sequence > g.shown_sequence), 0)
        """
    statement = _select(columns, listed)
    if cursor is None:
        rows = mysql.fetch_all(statement)
    else:
        cursor.execute(statement)
        rows = list(cursor.fetchall())
    return [
        CountedGroup(GroupKey(*row[:4]), row[4], row[5], row[6] == 1, int(row[7]), int(row[8]))
        for row in rows
    ]


def count_notified_after(
    cursor: Cursor, sequence: int, keys: Iterable[GroupKey]
) -> dict[GroupKey, int]:
    """Return how many rows of each of ``keys``, at least one, notified after a sequence."""
    cursor.execute(_select(f"COALESCE(SUM(r.notified_sequence > {sequence:d}), 0)", list(keys)))
    return {GroupKey(*row[:4]): int(row[4]) for row in cursor.fetchall()}


def _select(columns: str, keys: Sequence[GroupKey]) -> str:
    """Return the statement that groups the rows of ``keys``, at least one."""
    joins = {notified.KIND: _join(notified.ROWS) for _, notified in offers("notified")}
    by_join: dict[str, list[GroupKey]] = {}
    for key in keys:
        by_join.setdefault(joins.get(key.kind, _JOIN_REACTIONS), []).append(key)
    return " UNION ALL ".join(_select_kind(columns, *of_kind) for of_kind in by_join.items())


def _join(rows: str) -> str:
    return f"LEFT JOIN ({rows}) AS r ON r.subject_id = g.subject_id"


def _select_kind(columns: str, join: str, keys: Sequence[GroupKey]) -> str:
    among = " OR ".join(
        "(g.user_id = %d AND g.kind = '%s' AND g.subject_type = '%s' AND g.subject_id = %d)" % key
        for key in sorted(keys)
    )
    return f"""
        SELECT g.user_id, g.kind, g.subject_type, g.subject_id, {columns}
        FROM notification_group AS g FORCE INDEX (PRIMARY)
        {join}
        WHERE {among}
        GROUP BY g.user_id, g.kind, g.subject_type, g.subject_id
        """


def count_unread(after_id: int, limit: int) -> list[CountedUnread]:
    """Return a page of all unread counters, by user, with the numbers of their groups and
    blocks."""
    rows = mysql.fetch_all(
        f"""
        SELECT b.user_id, b.unread, (
                   SELECT COUNT(*)
                   FROM notification_group AS g FORCE INDEX (by_state)
                   WHERE g.user_id = b.user_id
                     AND g.is_open = 1
                     AND g.fresh > 0
               ), b.blocking, (
                   SELECT COUNT(*) FROM user_block AS k WHERE k.blocker_id = b.user_id
               )
        FROM unread_counter AS b FORCE INDEX (PRIMARY)
        WHERE b.user_id > {after_id:d}
        ORDER BY b.user_id LIMIT {limit:d}
        """
    )
    return [CountedUnread(*row) for row in rows]


def correct_unread(cursor: Cursor, user_ids: Iterable[int]) -> int:
    """Count the blocks of users whose unread counters are locked, and raise sequences that are
    behind their groups; return how many unread counters changed."""
    return cursor.execute(
        f"""
        UPDATE unread_counter AS b FORCE INDEX (PRIMARY)
        SET b.blocking = (SELECT COUNT(*) FROM user_block AS k WHERE k.blocker_id = b.user_id),
            b.sequence = GREATEST(b.sequence, COALESCE((
                SELECT MAX(GREATEST(g.changed, g.read_sequence, g.shown_sequence))
                FROM notification_group AS g FORCE INDEX (PRIMARY)
                WHERE g.user_id = b.user_id
            ), 0))
        WHERE b.user_id IN ({sql.render_ids(user_ids)})
        """
    )
