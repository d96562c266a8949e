"""Whom two users both follow, by MySQL."""

from __future__ import annotations

from plaza.follows.follows import Place
from plaza.infra import mysql


def read_common(user_id: int, actor_id: int, after: Place | None, limit: int) -> list[Place]:
    """Whom both follow, newest of the actor's first. One statement. Raises MysqlDown.

    Walks the actor's follows in their order, and looks the other's up by primary key: as many
    look-ups as the actor follows at most, which is limited.
    """
    where, args = "", [user_id, actor_id]
    if after is not None:
        where = " AND (mine.ver < %s OR (mine.ver = %s AND mine.target_id < %s))"
        args += [after.ver_us, after.ver_us, after.user_id]
    rows = mysql.fetch_all(
        f"""
        SELECT mine.ver, mine.target_id
        FROM reaction AS mine FORCE INDEX (by_actor)
        STRAIGHT_JOIN reaction AS theirs FORCE INDEX (PRIMARY)
          ON theirs.target_type = mine.target_type
            AND theirs.target_id = mine.target_id
            AND theirs.kind = mine.kind
            AND theirs.actor_id = %s
            AND theirs.state = 1
        WHERE mine.actor_id = %s
          AND mine.kind = 'follow'
          AND mine.state = 1{where}
        ORDER BY mine.ver DESC, mine.target_type DESC, mine.target_id DESC
        LIMIT {limit:d}
        """,
        args,
    )
    return [Place(ver, target_id) for ver, target_id in rows]
