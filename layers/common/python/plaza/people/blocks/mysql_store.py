"""Blocks in MySQL, the source of truth. Each function runs one statement and raises MysqlDown."""

from __future__ import annotations

from collections.abc import Iterable

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.people.blocks.model import BlockCursor

_NOW_US = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"


def insert(cursor: Cursor, blocker_id: int, blocked_id: int) -> bool:
    """Store a block; return False if there is one."""
    return (
        cursor.execute(
            """
            INSERT INTO user_block (blocker_id, blocked_id, created_at)
            VALUES (%s, %s, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE blocker_id = user_block.blocker_id
            """,
            (blocker_id, blocked_id),
        )
        == 1
    )


def count(cursor: Cursor, blocker_id: int) -> int:
    """Return the number of users that a user blocks."""
    cursor.execute("SELECT COUNT(*) FROM user_block WHERE blocker_id = %s", (blocker_id,))
    [(blocks,)] = cursor.fetchall()
    return int(blocks)


def delete(cursor: Cursor, blocker_id: int, blocked_id: int) -> bool:
    """Delete a block; return False if there is none."""
    statement = "DELETE FROM user_block WHERE blocker_id = %s AND blocked_id = %s"
    return cursor.execute(statement, (blocker_id, blocked_id)) == 1


def delete_of_user(blocker_id: int) -> int:
    """Delete all blocks of a user; return how many there were."""
    return mysql.write("DELETE FROM user_block WHERE blocker_id = %s", (blocker_id,))


def read_now_us() -> int:
    """Return the time of MySQL, microseconds since 1970: above the versions of earlier reads."""
    [(now_us,)] = mysql.fetch_all(f"SELECT {_NOW_US}")
    return int(now_us)


def read_blocked(user_ids: Iterable[int]) -> dict[int, tuple[frozenset[int], int]]:
    """Return user -> (the users that it blocks, version: the time of the read), of all of them."""
    blockers = list(user_ids)
    rows = mysql.fetch_all(
        f"""
        SELECT {_NOW_US}, b.blocker_id, b.blocked_id
        FROM (SELECT 1 AS one) AS always
        LEFT JOIN user_block AS b ON b.blocker_id IN ({sql.render_ids(blockers)})
        """
    )
    blocked: dict[int, set[int]] = {user_id: set() for user_id in blockers}
    for _, blocker_id, blocked_id in rows:
        if blocker_id is not None:
            blocked[blocker_id].add(blocked_id)
    return {
        user_id: (frozenset(blocked_ids), int(rows[0][0]))
        for user_id, blocked_ids in blocked.items()
    }


def read_page(blocker_id: int, after: BlockCursor | None, limit: int) -> list[BlockCursor]:
    """Return a page of the users that a user blocks, the newest block first."""
    where, args = "", [blocker_id]
    if after is not None:
        at = sql.from_us(after.created_us)
        where = " AND (created_at < %s OR (created_at = %s AND blocked_id < %s))"
        args += [at, at, after.user_id]  # type: ignore[list-item]
    rows = mysql.fetch_all(
        f"""
        SELECT created_at, blocked_id
        FROM user_block FORCE INDEX (by_time)
        WHERE blocker_id = %s{where}
        ORDER BY created_at DESC, blocked_id DESC LIMIT {limit:d}
        """,
        args,
    )
    return [BlockCursor(sql.to_us(created_at), user_id) for created_at, user_id in rows]


def find_follows_of_blocked(blocker_ids: Iterable[int]) -> list[tuple[int, int]]:
    """Return (follower, followed) of the stored follows that blocks of the last hour should have
    ended, in both directions."""
    numbers = sql.render_ids(blocker_ids)
    arms = [
        f"""
        SELECT STRAIGHT_JOIN r.actor_id, r.target_id
        FROM user_block AS b FORCE INDEX (by_time)
        JOIN reaction AS r FORCE INDEX (PRIMARY)
          ON r.target_type = 'user'
            AND r.target_id = b.{followed}
            AND r.kind = 'follow'
            AND r.actor_id = b.{follower}
            AND r.state = 1
        WHERE b.blocker_id IN ({numbers})
          AND b.created_at > UTC_TIMESTAMP(6) - INTERVAL 1 HOUR
        """
        for follower, followed in (("blocker_id", "blocked_id"), ("blocked_id", "blocker_id"))
    ]
    return [(actor, user) for actor, user in mysql.fetch_all(" UNION ALL ".join(arms))]
