"""Common follows of two users in MySQL."""

from __future__ import annotations

from plaza.infra.mysql import mysql
from plaza.people.follows.model import FollowCursor


def read_common(
    user_id: int, actor_id: int, after: FollowCursor | None, limit: int
) -> list[FollowCursor]:
    """Return the users that both follow, the actor's newest follow first. Raises MysqlDown.

    One statement, which scans the actor's follows in order with one primary-key lookup each: at
    most FOLLOW_LIMIT.
    """
    where, args = "", [user_id, actor_id]
    if after is not None:
        where = " AND (own.version < %s OR (own.version = %s AND own.target_id < %s))"
        args += [after.version_us, after.version_us, after.user_id]
    rows = mysql.fetch_all(
        f"""
        SELECT own.version, own.target_id
        FROM reaction AS own FORCE INDEX (by_actor)
        STRAIGHT_JOIN reaction AS other FORCE INDEX (PRIMARY)
          ON other.target_type = own.target_type
            AND other.target_id = own.target_id
            AND other.kind = own.kind
            AND other.actor_id = %s
            AND other.state = 1
        WHERE own.actor_id = %s
          AND own.kind = 'follow'
          AND own.state = 1{where}
        ORDER BY own.version DESC, own.target_type DESC, own.target_id DESC
        LIMIT {limit:d}
        """,
        args,
    )
    return [FollowCursor(version, target_id) for version, target_id in rows]
