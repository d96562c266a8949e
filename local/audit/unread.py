"""Compare unread counters and their groups with the rows that they count; shares no code with the
product."""

from collections.abc import Iterator
from typing import NamedTuple

from pymysql.cursors import Cursor


class UnreadCount(NamedTuple):
    """How many users have an unread counter, how many of their groups are new, and what is new in
    these."""

    unread_counters: int = 0
    groups: int = 0
    fresh: int = 0


_WRONG_GROUPS = """
    SELECT g.user_id, g.kind, g.subject_type, g.subject_id, g.fresh, g.fresh_after,
           CAST(COALESCE(SUM(r.notified_sequence > g.read_sequence), 0) AS SIGNED) AS counted,
           CAST(COALESCE(SUM(r.notified_sequence > g.shown_sequence), 0) AS SIGNED) AS counted_after
    FROM notification_group AS g
    JOIN unread_counter AS b ON b.user_id = g.user_id
    LEFT JOIN {rows}
    WHERE g.kind {kinds}
    GROUP BY g.user_id, g.kind, g.subject_type, g.subject_id
    HAVING g.fresh <> counted
        OR g.fresh_after <> counted_after
        OR MAX(g.fresh > 0 AND g.is_open = 0)
        OR COALESCE(MAX(r.notified_sequence), 0) > MAX(g.changed)
        OR MAX(g.read_sequence) > MAX(g.shown_sequence)
        OR MAX(g.changed) > MAX(b.sequence)
        OR MAX(g.shown_sequence) > MAX(b.sequence)
    """
_OF_REACTIONS = """reaction AS r ON r.target_type = g.subject_type AND r.target_id = g.subject_id
    AND r.kind = g.kind AND r.state = 1"""
_OF_COMMENTS = """content AS r ON r.content_type = 'comment' AND r.parent_id = g.subject_id
    AND r.deleted_at IS NULL"""
_WRONG_UNREAD = """
    SELECT user_id, SUM(unread), SUM(fresh_groups)
    FROM (
        SELECT user_id, unread, 0 AS fresh_groups FROM unread_counter
        UNION ALL
        SELECT user_id, 0, COUNT(*) FROM notification_group WHERE fresh > 0 GROUP BY user_id
    ) AS both_sides
    GROUP BY user_id
    HAVING SUM(unread) <> SUM(fresh_groups)
    """
_WRONG_BLOCKS = """
    SELECT b.user_id, b.blocking, COUNT(u.blocker_id)
    FROM unread_counter AS b
    LEFT JOIN user_block AS u ON u.blocker_id = b.user_id
    GROUP BY b.user_id, b.blocking
    HAVING b.blocking < COUNT(u.blocker_id)
    """
_OWN = """
    SELECT r.kind, r.target_type, r.target_id, r.actor_id
    FROM reaction AS r
    JOIN content AS c ON c.content_type = r.target_type AND c.content_id = r.target_id
    WHERE r.notified_sequence > 0 AND c.author_id = r.actor_id
    UNION ALL
    SELECT r.kind, r.target_type, r.target_id, r.actor_id
    FROM reaction AS r
    JOIN external_target AS t ON t.type = r.target_type AND t.id = r.target_id
    WHERE r.notified_sequence > 0 AND t.owner_id = r.actor_id
    """


def find_wrong_unread(cursor: Cursor) -> Iterator[tuple[str, str]]:
    """Yield (what, details) of each unread counter and group that is not what its rows say."""
    for rows, kinds in ((_OF_REACTIONS, "<> 'comment'"), (_OF_COMMENTS, "= 'comment'")):
        cursor.execute(_WRONG_GROUPS.format(rows=rows, kinds=kinds))
        for user_id, kind, subject_type, subject_id, *numbers in cursor:
            fresh, after, counted, counted_after = numbers
            details = f"fresh {fresh}, rows {counted}; since the list {after}, {counted_after}"
            yield f"unread counter of {user_id}, {kind} {subject_type}:{subject_id}", details
    cursor.execute(_WRONG_UNREAD)
    for user_id, unread, groups in cursor:
        yield f"unread counter of {user_id}", f"unread {unread}, groups {groups}"
    cursor.execute(_WRONG_BLOCKS)
    for user_id, blocking, blocks in cursor:
        yield f"unread counter of {user_id}", f"blocking {blocking}, blocks {blocks}"
    cursor.execute(_OWN)
    for kind, target_type, target_id, actor_id in cursor:
        yield f"{kind} {target_type}:{target_id} by {actor_id}", "notified for its own actor"


def count_unread(cursor: Cursor) -> UnreadCount:
    """Return the sums of all unread counters. One statement."""
    cursor.execute(
        "SELECT (SELECT COUNT(*) FROM unread_counter), COUNT(*),"
        " CAST(COALESCE(SUM(fresh), 0) AS SIGNED)"
        " FROM notification_group WHERE fresh > 0"
    )
    [counts] = cursor.fetchall()
    return UnreadCount(*counts)
