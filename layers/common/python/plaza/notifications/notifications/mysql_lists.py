"""Groups of unread counters in MySQL as users list and mark them, and as they are cleaned up.
Unless stated otherwise, a function runs one statement; without a cursor it raises MysqlDown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import GroupKey
from plaza.notifications.notifications.model import (
    SEQUENCES_PER_EPOCH,
    Group,
    GroupCursor,
    ListedGroup,
    UnreadState,
)
from plaza.notifications.notifications.mysql_store import GROUP_COLUMNS, group_of

MAX_MARKED = 500
MAX_COUNTED_ROWS = 50_000  # by one mark
TOTAL_ROWS = """
    COALESCE((
        SELECT counted.total
        FROM counter AS counted
        WHERE counted.target_type = g.subject_type
          AND counted.target_id = g.subject_id
          AND counted.kind = g.kind
    ), 0)
    """
"""SQL for about how many rows a group ``g`` counts, from its counter."""


def read_states(user_ids: Iterable[int]) -> dict[int, UnreadState]:
    """Return the unread counter of each of ``user_ids``; of a user without one, sequence 0."""
    ids = list(user_ids)
    if not ids:
        return {}
    rows = mysql.fetch_all(
        f"""
        SELECT b.user_id, g.epoch, COALESCE(b.sequence, 0), COALESCE(b.unread, 0)
        FROM log_barrier AS g
        LEFT JOIN unread_counter AS b ON b.user_id IN ({sql.render_ids(ids)})
        WHERE g.id = 1
        """
    )
    epoch = int(rows[0][1]) * SEQUENCES_PER_EPOCH if rows else 0
    states = dict.fromkeys(ids, UnreadState(epoch, 0))
    return states | {
        user_id: UnreadState(epoch + sequence, unread)
        for user_id, _, sequence, unread in rows
        if user_id is not None
    }


def read_notified_groups(after: Mapping[int, int], limit: int) -> list[ListedGroup]:
    """Return the groups of users with something fresh that notified after a sequence of each, of
    each user the newest ``limit``."""
    arms = [
        f"""
        (
            SELECT user_id, kind, subject_type, subject_id, fresh, changed, changed_at
            FROM notification_group FORCE INDEX (by_state)
            WHERE user_id = {user_id:d}
              AND is_open = 1
              AND changed > {sequence:d}
              AND fresh > 0
            ORDER BY changed DESC, kind DESC, subject_type DESC, subject_id DESC
            LIMIT {limit:d}
        )
        """
        for user_id, sequence in after.items()
    ]
    rows = mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ()
    return [ListedGroup(GroupKey(*row[:4]), *row[4:]) for row in rows]


def read_epoch(cursor: Cursor) -> int:
    """Return the first version of the current epoch of MySQL."""
    cursor.execute("SELECT epoch FROM log_barrier WHERE id = 1")
    [(epoch,)] = cursor.fetchall()
    return int(epoch) * SEQUENCES_PER_EPOCH


def read_page(
    cursor: Cursor, user_id: int, after: GroupCursor | None, limit: int
) -> list[tuple[ListedGroup, Group]]:
    """Return a page of the groups of a user, whose unread counter is locked, the newest
    notification first.

    Without locks: at READ COMMITTED it reads what the lock of the unread counter protects, and a
    locking read of this index also locks a group of the next user, in another order than its
    writers.
    """
    where, args = "", {"user_id": user_id}
    if after is not None:
        args |= after._asdict()
        where = """
              AND changed <= %(changed)s
              AND (changed < %(changed)s OR kind < %(kind)s
                OR (kind = %(kind)s AND (subject_type < %(subject_type)s
                  OR (subject_type = %(subject_type)s AND subject_id < %(subject_id)s))))
        """
    newest_first = "ORDER BY changed DESC, kind DESC, subject_type DESC, subject_id DESC"
    arms = [
        f"""
        (
            SELECT {GROUP_COLUMNS}, changed_at
            FROM notification_group FORCE INDEX (by_state)
            WHERE user_id = %(user_id)s
              AND is_open = {is_open:d}{where}
            {newest_first} LIMIT {limit:d}
        )
        """
        for is_open in (True, False)
    ]
    cursor.execute(f"{' UNION ALL '.join(arms)} {newest_first} LIMIT {limit:d}", args)
    page = []
    for row in cursor.fetchall():
        key, changed_at = GroupKey(*row[:4]), row[-1]
        group = group_of(row[4:-1])
        page.append((ListedGroup(key, group.fresh, group.changed, changed_at), group))
    return page


def find_marked(
    cursor: Cursor, user_id: int, at: int, keys: Sequence[GroupKey] | None
) -> list[tuple[GroupKey, Group, int]]:
    """Return up to 500 groups that a mark at a sequence moves, of ``keys``, or all, each with about
    how many rows it counts; without locks, as ``read_page``."""
    cursor.execute(
        f"""
        SELECT {GROUP_COLUMNS}, {TOTAL_ROWS}
        {_from_marked(user_id, at, keys)}
        ORDER BY changed, kind, subject_type, subject_id
        LIMIT {MAX_MARKED}
        """
    )
    return [(GroupKey(*row[:4]), group_of(row[4:-1]), int(row[-1])) for row in cursor.fetchall()]


def count_marked(cursor: Cursor, user_id: int, at: int, keys: Sequence[GroupKey] | None) -> int:
    """Return how many groups a mark would move."""
    cursor.execute(
        f"""
        SELECT COUNT(*)
        {_from_marked(user_id, at, keys)}
        """
    )
    [(count,)] = cursor.fetchall()
    return int(count)


def _from_marked(user_id: int, at: int, keys: Sequence[GroupKey] | None) -> str:
    """Return the clauses of groups that did not notify after a sequence, that have a checkpoint up
    to it, or a later one of another list and few rows, which are counted."""
    where = f"""
        FROM notification_group AS g FORCE INDEX (by_state)
        WHERE user_id = {user_id:d}
          AND is_open = 1
          AND (changed <= {at:d}
            OR (shown_sequence > read_sequence AND shown_sequence <= {at:d})
            OR (shown_sequence > {at:d} AND read_sequence < {at:d}
              AND {TOTAL_ROWS} <= {MAX_COUNTED_ROWS:d}))
        """
    if keys is None:
        return where
    among = " OR ".join(
        f"(kind = '{kind}' AND subject_type = '{subject_type}' AND subject_id = {subject_id:d})"
        for _, kind, subject_type, subject_id in keys
    )
    return f"{where} AND ({among or 'FALSE'})"


def find_open(subjects: Iterable[tuple[str, int, int]]) -> dict[int, list[tuple[str, int]]]:
    """Return user -> the ``subjects`` (type, id, owner) with an open group."""
    listed = sorted(subjects)
    arms = [
        f"""
        SELECT DISTINCT g.user_id, g.subject_type, g.subject_id
        FROM JSON_TABLE('{json.dumps([(i, user_id) for _, i, user_id in of_type])}', '$[*]'
            COLUMNS (subject_id BIGINT PATH '$[0]', user_id BIGINT PATH '$[1]')) AS k
        STRAIGHT_JOIN notification_group AS g FORCE INDEX (PRIMARY)
            ON  g.user_id = k.user_id
            AND g.kind IN ('like', 'comment')
            AND g.subject_type = '{subject_type}'
            AND g.subject_id = k.subject_id
        WHERE g.is_open = 1
        """
        for subject_type, of_type in groupby(listed, key=lambda subject: subject[0])
    ]
    subjects_of: dict[int, list[tuple[str, int]]] = {}
    for user_id, *subject in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        subjects_of.setdefault(user_id, []).append((subject[0], subject[1]))
    return subjects_of


def delete_groups(cursor: Cursor, user_id: int, limit: int) -> int:
    """Delete up to ``limit`` groups of a user, whose unread counter is locked; return their
    number."""
    return cursor.execute(
        f"""
        DELETE FROM notification_group
        WHERE user_id = %s
        ORDER BY kind, subject_type, subject_id
        LIMIT {limit:d}
        """,
        (user_id,),
    )


def count_unread(cursor: Cursor, user_ids: Iterable[int]) -> dict[int, int]:
    """Return the number of groups with something fresh of each of ``user_ids``."""
    ids = list(user_ids)
    cursor.execute(
        f"""
        SELECT user_id, COUNT(*)
        FROM notification_group FORCE INDEX (by_state)
        WHERE user_id IN ({sql.render_ids(ids)})
          AND is_open = 1
          AND fresh > 0
        GROUP BY user_id
        """
    )
    return dict.fromkeys(ids, 0) | dict(cursor.fetchall())


def find_old(before_s: int, limit: int) -> dict[int, list[GroupKey]]:
    """Return user -> groups that are read and did not notify ``before_s``, oldest first."""
    rows = mysql.fetch_all(
        f"""
        SELECT user_id, kind, subject_type, subject_id
        FROM notification_group FORCE INDEX (by_age)
        WHERE is_open = 0
          AND changed_on < DATE(UTC_TIMESTAMP() - INTERVAL %s SECOND)
        ORDER BY changed_on LIMIT {limit:d}
        """,
        (before_s,),
    )
    keys: dict[int, list[GroupKey]] = {}
    for row in rows:
        keys.setdefault(row[0], []).append(GroupKey(*row))
    return keys


def delete_read(cursor: Cursor, keys: Iterable[GroupKey]) -> int:
    """Delete the groups that are read, whose unread counters are locked; return their number. One
    statement for each kind and type."""
    ids: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for user_id, kind, subject_type, subject_id in sorted(keys):
        ids.setdefault((kind, subject_type), []).append((user_id, subject_id))
    return sum(
        cursor.execute(
            f"""
            DELETE g
            FROM JSON_TABLE('{json.dumps(of_kind)}', '$[*]'
                COLUMNS (user_id BIGINT PATH '$[0]', subject_id BIGINT PATH '$[1]')) AS k
            STRAIGHT_JOIN notification_group AS g FORCE INDEX (PRIMARY)
                ON  g.user_id = k.user_id
                AND g.kind = '{kind}'
                AND g.subject_type = '{subject_type}'
                AND g.subject_id = k.subject_id
            WHERE g.is_open = 0
              AND g.fresh = 0
            """
        )
        for (kind, subject_type), of_kind in ids.items()
    )
