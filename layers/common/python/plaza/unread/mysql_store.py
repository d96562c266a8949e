"""Unread counters and their groups in MySQL. A writer locks the unread counter, after the counters
of content, and then reads and writes its groups. Unless stated otherwise, a function runs one
statement; without a cursor it raises MysqlDown. A ``select_`` or ``render_`` returns a statement
for a packet.

Only numbers, and kinds and types of Plaza's, are rendered into the statements.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.unread.model import (
    SEQUENCES_PER_EPOCH,
    Group,
    GroupCursor,
    GroupKey,
    ListedGroup,
    UnreadCounter,
    UnreadState,
)

MAX_MARKED = 500
MAX_COUNTED_ROWS = 50_000  # by one mark
TOTAL_ROWS = """
    COALESCE(CASE kind
        WHEN 'like' THEN like_total
        WHEN 'follow' THEN follow_total
        ELSE comment_total
    END, 0)
    """
"""SQL for about how many rows a group counts, from its counter."""

_COLUMNS = ("fresh", "read_sequence", "changed", "shown_sequence", "fresh_after", "is_open")
_KEY = ("user_id", "kind", "subject_type", "subject_id")
_SELECTED = ", ".join([*_KEY, *_COLUMNS])
_BLOCKING = "(SELECT COUNT(*) FROM user_block WHERE blocker_id = {})"
Around = tuple[dict[GroupKey, Group], set[tuple[str, int]], set[tuple[int, int]]]
"""Groups, deleted texts, blocks (recipient, actor)."""


def lock_unread(cursor: Cursor, user_ids: Iterable[int]) -> dict[int, UnreadCounter]:
    """Lock the unread counters of users until the commit, in the order of the ids; create the
    missing ones. Two statements more when one is missing."""
    ids = sorted(set(user_ids))
    unread_counters = lock_existing(cursor, ids)
    if missing := [user_id for user_id in ids if user_id not in unread_counters]:
        create_unread(cursor, missing)
        unread_counters |= lock_existing(cursor, missing)
    return unread_counters


def lock_existing(cursor: Cursor, user_ids: Iterable[int]) -> dict[int, UnreadCounter]:
    """Lock the unread counters that exist of ``user_ids``, in the order of the ids, until the
    commit."""
    [rows] = mysql.read_all(cursor, [select_locked(user_ids)])
    return unread_of(rows)


def read_unread(cursor: Cursor, user_id: int) -> UnreadCounter | None:
    """Return an unread counter without a lock, for a snapshot; None if the user has none."""
    [rows] = mysql.read_all(cursor, [_select_unread([user_id])])
    return unread_of(rows).get(user_id)


def select_locked(user_ids: Iterable[int]) -> str:
    """Return the SELECT of ``lock_existing``, for ``unread_of``."""
    return f"{_select_unread(sorted(user_ids))} FOR UPDATE"


def _select_unread(user_ids: Iterable[int]) -> str:
    return f"""
        SELECT {sql.concat_rows("user_id", "sequence", "unread", "blocking")}
        FROM unread_counter FORCE INDEX (PRIMARY)
        WHERE user_id IN ({sql.render_ids(user_ids)})
        """


def unread_of(rows: Iterable[mysql.Row]) -> dict[int, UnreadCounter]:
    """Return the unread counters that exist from the rows of ``select_locked``."""
    return {
        user_id: UnreadCounter(*numbers)
        for (packed,) in rows
        for user_id, *numbers in sql.split_rows(packed)
    }


def try_lock_unread(cursor: Cursor, user_id: int) -> UnreadCounter | None:
    """Lock an unread counter until the commit; None, without a wait, if it is locked or does not
    exist."""
    statement = """
        SELECT sequence, unread, blocking
        FROM unread_counter
        WHERE user_id = %s
        FOR UPDATE NOWAIT
        """
    if not mysql.try_lock(cursor, statement, (user_id,)):
        return None
    row = cursor.fetchone()
    return UnreadCounter(*row) if row else None


def create_unread(cursor: Cursor, user_ids: Iterable[int]) -> None:
    """Create the missing unread counters of users."""
    rows = ",".join(
        f"({int(user_id)},{_BLOCKING.format(int(user_id))})" for user_id in sorted(set(user_ids))
    )
    mysql.send(
        cursor,
        f"""
        INSERT INTO unread_counter (user_id, blocking)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE user_id = unread_counter.user_id
        """,
    )


def recount_blocks(cursor: Cursor, user_id: int) -> None:
    """Count the blocks by a user, whose unread counter is locked."""
    counted = _BLOCKING.format(int(user_id))
    mysql.send(
        cursor, f"UPDATE unread_counter SET blocking = {counted} WHERE user_id = {user_id:d}"
    )


def read_around(
    cursor: Cursor, keys: Collection[GroupKey], pairs: Collection[tuple[int, int]]
) -> Around:
    """Return the groups of ``keys`` that exist; which of their texts are deleted; which (recipient,
    actor) of ``pairs`` are blocks. The recipient of a text is its author."""
    [rows] = mysql.read_all(cursor, [select_around(keys, pairs)])
    return around_of(rows)


def select_around(keys: Collection[GroupKey], pairs: Collection[tuple[int, int]]) -> str:
    """Return the SELECT of ``read_around``, for ``around_of``.

    Run it after ``select_locked``, which protects the groups, as in ``read_page``: a deletion
    clears the groups of its text under that lock, later.
    """
    return " UNION ALL ".join([*_select_groups(keys), *_select_blocks(pairs)])


def around_of(rows: Iterable[mysql.Row]) -> Around:
    """Return groups, deleted texts and blocks from the rows of ``select_around``."""
    groups: dict[GroupKey, Group] = {}
    deleted: set[tuple[str, int]] = set()
    blocked: set[tuple[int, int]] = set()
    for what, subject_type, packed, packed_deleted in rows:
        numbers = sql.split_rows(packed)
        if what == "blocked":
            blocked.update((blocker, blocked_id) for blocker, blocked_id in numbers)
            continue
        for user_id, subject_id, *columns in numbers:
            groups[GroupKey(user_id, what, subject_type, subject_id)] = _group(columns)
        deleted.update(
            (subject_type, content_id) for (content_id,) in sql.split_rows(packed_deleted)
        )
    return groups, deleted, blocked


def _select_groups(keys: Collection[GroupKey]) -> list[str]:
    ids: dict[tuple[str, str], list[int]] = {}
    for _, kind, subject_type, subject_id in keys:
        ids.setdefault((kind, subject_type), []).append(subject_id)
    columns = (f"g.{column}" for column in ("user_id", "subject_id", *_COLUMNS))
    packed = sql.concat_rows(*columns)
    return [
        f"""
        SELECT '{kind}', 'user', {packed}, NULL
        FROM notification_group AS g FORCE INDEX (PRIMARY)
        WHERE g.user_id IN ({sql.render_ids(sorted(of_kind))})
          AND g.kind = '{kind}'
          AND g.subject_type = 'user'
          AND g.subject_id = g.user_id
        """
        if subject_type == "user"
        else f"""
        SELECT '{kind}', '{subject_type}', {packed},
               {sql.concat_rows("IF(c.deleted_at IS NULL, NULL, c.content_id)")}
        FROM content AS c FORCE INDEX (PRIMARY)
        LEFT JOIN notification_group AS g FORCE INDEX (PRIMARY)
            ON  g.user_id = c.author_id
            AND g.kind = '{kind}'
            AND g.subject_type = '{subject_type}'
            AND g.subject_id = c.content_id
        WHERE c.content_type = '{subject_type}'
          AND c.content_id IN ({sql.render_ids(sorted(of_kind))})
        """
        for (kind, subject_type), of_kind in ids.items()
    ]


def _select_blocks(pairs: Collection[tuple[int, int]]) -> list[str]:
    """Return the SELECT of the blocks among ``pairs``, which is evaluated only if a recipient
    blocks a user."""
    if not pairs:
        return []
    recipients = sql.render_ids(sorted({recipient for recipient, _ in pairs}))
    return [
        f"""
        SELECT 'blocked', '', {sql.concat_rows("b.blocker_id", "b.blocked_id")}, NULL
        FROM JSON_TABLE('{json.dumps(sorted(pairs))}', '$[*]'
            COLUMNS (blocker_id BIGINT PATH '$[0]', blocked_id BIGINT PATH '$[1]')) AS k
        STRAIGHT_JOIN user_block AS b FORCE INDEX (PRIMARY)
            ON  b.blocker_id = k.blocker_id
            AND b.blocked_id = k.blocked_id
        WHERE EXISTS (
            SELECT 1
            FROM unread_counter FORCE INDEX (PRIMARY)
            WHERE user_id IN ({recipients})
              AND blocking > 0
        )
        """
    ]


def store_groups(cursor: Cursor, groups: Mapping[GroupKey, Group]) -> None:
    """Store groups, whose unread counters are locked."""
    mysql.send(cursor, render_groups(groups))


def raise_unread(cursor: Cursor, changes: Mapping[int, int]) -> None:
    """Raise the sequences of locked unread counters by one, and their unread groups by ``changes``,
    user -> change."""
    mysql.send(cursor, render_raise(changes))


def render_groups(groups: Mapping[GroupKey, Group]) -> str:
    """Return the statement of ``store_groups``. The time is set where a group notified."""
    rows = ",".join(
        "(%d,'%s','%s',%d,%d,%d,%d,%d,%d,%d,UTC_TIMESTAMP(6),UTC_DATE())"
        % (
            *key,
            group.fresh,
            group.read_sequence,
            group.changed,
            group.shown_sequence,
            group.fresh_after,
            group.is_open,
        )
        for key, group in sorted(groups.items(), key=lambda pair: pair[0])
    )
    values = ", ".join(f"{column} = VALUES({column})" for column in _COLUMNS)
    return f"""
        INSERT INTO notification_group ({_SELECTED}, changed_at, changed_on)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE
            changed_at = IF(VALUES(changed) > notification_group.changed,
                            VALUES(changed_at), notification_group.changed_at),
            changed_on = IF(VALUES(changed) > notification_group.changed,
                            VALUES(changed_on), notification_group.changed_on),
            {values}
        """


def render_raise(changes: Mapping[int, int]) -> str:
    """Return the statement of ``raise_unread``."""
    users_of: dict[int, list[int]] = {}
    for user_id, change in changes.items():
        users_of.setdefault(change, []).append(user_id)
    unread = "".join(
        f" + {change:d} * (user_id IN ({sql.render_ids(sorted(ids))}))"
        for change, ids in users_of.items()
        if change
    )
    return f"""
        UPDATE unread_counter FORCE INDEX (PRIMARY)
        SET sequence = sequence + 1, unread = unread{unread}
        WHERE user_id IN ({sql.render_ids(sorted(changes))})
        """


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
            SELECT {_SELECTED}, changed_at
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
        group = _group(row[4:-1])
        page.append((ListedGroup(key, group.fresh, group.changed, changed_at), group))
    return page


def find_marked(
    cursor: Cursor, user_id: int, at: int, keys: Sequence[GroupKey] | None
) -> list[tuple[GroupKey, Group, int]]:
    """Return up to 500 groups that a mark at a sequence moves, of ``keys``, or all, each with about
    how many rows it counts; without locks, as ``read_page``."""
    cursor.execute(
        f"""
        SELECT {_SELECTED}, {TOTAL_ROWS}
        {_from_marked(user_id, at, keys)}
        ORDER BY changed, kind, subject_type, subject_id
        LIMIT {MAX_MARKED}
        """
    )
    return [(GroupKey(*row[:4]), _group(row[4:-1]), int(row[-1])) for row in cursor.fetchall()]


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
        FROM notification_group FORCE INDEX (by_state)
        LEFT JOIN content_counter
            ON  target_type = subject_type
            AND target_id = subject_id
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


def _group(columns: Sequence[int]) -> Group:
    fresh, read_sequence, changed, shown_sequence, fresh_after, is_open = columns
    return Group(fresh, read_sequence, changed, shown_sequence, fresh_after, is_open == 1)


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
