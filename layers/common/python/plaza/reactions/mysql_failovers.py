"""What is known about the last look at Redis, in MySQL: its epoch, and how far the log was.

How far it was are rows of ``watermark``: no fact after the lowest of them is archived away.
"""

from __future__ import annotations

from typing import NamedTuple

from pymysql.cursors import Cursor

from plaza.infra import mysql
from plaza.reactions.reactions import Key

_BEFORE, _LAST = "redis_before", "redis_last"


class Looks(NamedTuple):
    """The last look at Redis: its ``epoch`` then, and the log's heads at the look before that
    one (``before``) and at that one (``last``). None: nobody has looked yet.

    ``settling`` is the epoch whose failover is being followed, up to seq ``reached`` of the log.
    """

    epoch: int | None
    settling: int | None
    reached: int | None
    before: int | None
    last: int | None


def read_looks() -> tuple[Looks, int]:
    """The last look, and the head of the log now. Raises MysqlDown."""
    [(*looks, head)] = mysql.fetch_all(
        """
        SELECT epochs.epoch, epochs.settling, epochs.reached,
               (SELECT seq FROM watermark WHERE name = %s),
               (SELECT seq FROM watermark WHERE name = %s),
               (SELECT COALESCE(MAX(seq), 0) FROM reaction_log)
        FROM (SELECT 1 AS id) AS one
        LEFT JOIN redis_epoch AS epochs ON epochs.id = one.id
        """,
        (_BEFORE, _LAST),
    )
    return Looks(*looks), int(head)


def keep_look(epoch: int, before: int, last: int) -> None:
    """A look is over, and nothing left to follow. All of it is kept, or nothing.

    Raises MysqlDown.
    """

    def keep(cursor: Cursor) -> None:
        cursor.execute(
            """
            INSERT INTO watermark (name, seq)
            VALUES (%s, %s), (%s, %s)
            ON DUPLICATE KEY UPDATE seq = VALUES(seq)
            """,
            (_BEFORE, before, _LAST, last),
        )
        cursor.execute(
            """
            INSERT INTO redis_epoch (id, epoch)
            VALUES (1, %s)
            ON DUPLICATE KEY UPDATE epoch = VALUES(epoch), settling = NULL, reached = NULL
            """,
            (epoch,),
        )

    mysql.atomically(keep)


def keep_reached(settling: int, reached: int) -> None:
    """What follows a failover has come so far, and isn't done. Raises MysqlDown."""
    mysql.write("UPDATE redis_epoch SET settling = %s, reached = %s", (settling, reached))


def read_logged(after: int, count: int) -> list[tuple[int, Key]]:
    """(seq, whose reaction) of the next ``count`` facts after ``after``. Raises MysqlDown."""
    found = mysql.fetch_all(
        """
        SELECT seq, target_type, target_id, kind, actor_id
        FROM reaction_log
        WHERE seq > %s
        ORDER BY seq LIMIT %s
        """,
        (after, count),
    )
    return [(int(seq), Key(*key)) for seq, *key in found]
