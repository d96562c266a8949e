"""Unread counters and their groups in MySQL. A writer locks the unread counter, after the counters
of content, and then reads and writes its groups. Unless stated otherwise, a function runs one
statement; without a cursor it raises MysqlDown. A ``select_`` or ``render_`` returns statements for
a packet.

Only numbers, and kinds and types of Plaza's, are rendered into the statements.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter

from plaza.core.targets.types import TYPES
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import GroupKey
from plaza.notifications.notifications.model import Group, UnreadCounter

_COLUMNS = ("fresh", "read_sequence", "changed", "shown_sequence", "fresh_after", "is_open")
GROUP_COLUMNS = ", ".join(["user_id", "kind", "subject_type", "subject_id", *_COLUMNS])
"""The key of a group, and the columns of ``group_of``."""

_BLOCKING = "(SELECT COUNT(*) FROM user_block WHERE blocker_id = {})"
Around = tuple[dict[GroupKey, Group], set[tuple[str, int]], set[tuple[int, int]]]
"""Groups, deleted texts, blocks (recipient, actor)."""


def lock_existing(cursor: Cursor, user_ids: Iterable[int]) -> dict[int, UnreadCounter]:
    """Lock the unread counters that exist of ``user_ids``, in the order of the ids, until the
    commit."""
    return unread_of(*mysql.read_all(cursor, [select_unread(user_ids, "FOR UPDATE")]))


def read_unread(cursor: Cursor, user_id: int) -> UnreadCounter | None:
    """Return an unread counter without a lock, for a snapshot; None if the user has none."""
    return unread_of(*mysql.read_all(cursor, [select_unread([user_id])])).get(user_id)


def select_unread(user_ids: Iterable[int], locking: str = "") -> str:
    """Return the SELECT of the unread counters that exist of ``user_ids``, for ``unread_of``."""
    return f"""
        SELECT {sql.concat_rows("user_id", "sequence", "unread", "blocking")}
        FROM unread_counter FORCE INDEX (PRIMARY)
        WHERE user_id IN ({sql.render_ids(sorted(user_ids))})
        {locking}
        """


def unread_of(rows: Iterable[mysql.Row]) -> dict[int, UnreadCounter]:
    """Return the unread counters that exist from the rows of ``select_unread``."""
    return {
        user_id: UnreadCounter(*numbers)
        for (packed,) in rows
        for user_id, *numbers in sql.split_rows(packed)
    }


def select_nowait(user_ids: Iterable[int]) -> str:
    """Return the SELECT that locks the unread counters that exist of users until the commit, and
    fails if one is locked."""
    ids = sql.render_ids(sorted(user_ids))
    return f"SELECT user_id FROM unread_counter WHERE user_id IN ({ids}) FOR UPDATE NOWAIT"


def render_new(user_ids: Iterable[int]) -> str:
    """Return the statement that creates the missing unread counters of users."""
    rows = ",".join(f"({i:d},{_BLOCKING.format(int(i))})" for i in sorted(user_ids))
    return f"""
        INSERT INTO unread_counter (user_id, blocking)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE user_id = unread_counter.user_id
        """


def render_recount(user_id: int) -> str:
    """Return the statement that counts the blocks by a user whose unread counter is locked: actors
    are compared with the blocks of recipients that have some."""
    counted = _BLOCKING.format(int(user_id))
    return f"UPDATE unread_counter SET blocking = {counted} WHERE user_id = {user_id:d}"


def read_around(
    cursor: Cursor, keys: Collection[GroupKey], pairs: Collection[tuple[int, int]]
) -> Around:
    """Return the groups of ``keys`` that exist; which of their texts are deleted; which (recipient,
    actor) of ``pairs`` are blocks. The recipient of a text is its author."""
    return around_of(*mysql.read_all(cursor, [select_around(keys, pairs)]))


def select_around(keys: Collection[GroupKey], pairs: Collection[tuple[int, int]]) -> str:
    """Return the SELECT of ``read_around``, for ``around_of``.

    Run it after the unread counters are locked, which protects the groups, as in ``read_page``: a
    deletion clears the groups of its text under that lock, later.
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
            blocked.update((blocker_id, blocked_id) for blocker_id, blocked_id in numbers)
            continue
        for user_id, subject_id, *columns in numbers:
            groups[GroupKey(user_id, what, subject_type, subject_id)] = group_of(columns)
        deleted.update(
            (subject_type, content_id) for [content_id] in sql.split_rows(packed_deleted)
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
        if not (rows := TYPES[subject_type].selects.rows)
        else f"""
        SELECT '{kind}', '{subject_type}', {packed},
               {sql.concat_rows("IF(t.deleted_at IS NULL, NULL, t.id)")}
        FROM ({rows}) AS t
        LEFT JOIN notification_group AS g FORCE INDEX (PRIMARY)
            ON  g.user_id = t.owner_id
            AND g.kind = '{kind}'
            AND g.subject_type = '{subject_type}'
            AND g.subject_id = t.id
        WHERE t.type = '{subject_type}'
          AND t.id IN ({sql.render_ids(sorted(of_kind))})
        """
        for (kind, subject_type), of_kind in ids.items()
    ]


def _select_blocks(pairs: Collection[tuple[int, int]]) -> list[str]:
    """Return the SELECT of the blocks among ``pairs``, which is evaluated only if a recipient
    blocks a user."""
    if not pairs:
        return []
    recipients = sql.render_ids({recipient for recipient, _ in pairs})
    return [
        f"""
        SELECT 'blocked', '', {sql.concat_rows("b.blocker_id", "b.blocked_id")}, NULL
        FROM JSON_TABLE('{json.dumps([*pairs])}', '$[*]'
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


def group_of(columns: Sequence[int]) -> Group:
    """Return the group of a row."""
    fresh, read_sequence, changed, shown_sequence, fresh_after, is_open = columns
    return Group(fresh, read_sequence, changed, shown_sequence, fresh_after, is_open == 1)


def store(
    cursor: Cursor, groups: Mapping[GroupKey, Group], unread: Mapping[int, int] | None = None
) -> None:
    """Store groups, whose unread counters are locked; raise the sequences of unread counters by
    one, and their unread groups by ``unread``, user -> change. Two statements."""
    for write in render_writes(groups, unread or {}):
        mysql.send(cursor, write)


def render_writes(groups: Mapping[GroupKey, Group], unread: Mapping[int, int]) -> list[str]:
    """Return the statements of ``store``, none for what is empty."""
    writes = [_render_groups(groups)] if groups else []
    return [*writes, _render_raise(unread)] if unread else writes


def _render_groups(groups: Mapping[GroupKey, Group]) -> str:
    """Return the statement that stores groups. The time is set where a group notified."""
    rows = ",".join(
        "(%d,'%s','%s',%d,%d,%d,%d,%d,%d,%d,UTC_TIMESTAMP(6),UTC_DATE())"
        % (*key, *(getattr(group, column) for column in _COLUMNS))
        for key, group in sorted(groups.items(), key=itemgetter(0))
    )
    values = ", ".join(f"{column} = VALUES({column})" for column in _COLUMNS)
    return f"""
        INSERT INTO notification_group ({GROUP_COLUMNS}, changed_at, changed_on)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE
            changed_at = IF(VALUES(changed) > notification_group.changed,
                            VALUES(changed_at), notification_group.changed_at),
            changed_on = IF(VALUES(changed) > notification_group.changed,
                            VALUES(changed_on), notification_group.changed_on),
            {values}
        """


def _render_raise(unread: Mapping[int, int]) -> str:
    users_of: dict[int, list[int]] = {}
    for user_id, change in unread.items():
        users_of.setdefault(change, []).append(user_id)
    changes = "".join(
        f" + {change:d} * (user_id IN ({sql.render_ids(ids)}))"
        for change, ids in users_of.items()
        if change
    )
    return f"""
        UPDATE unread_counter FORCE INDEX (PRIMARY)
        SET sequence = sequence + 1, unread = unread{changes}
        WHERE user_id IN ({sql.render_ids(sorted(unread))})
        """
