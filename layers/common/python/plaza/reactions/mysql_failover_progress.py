"""What is known about the last look at Redis, in MySQL: its epoch, and how far the log was.

How far it was are rows of ``watermark``: no event after the lowest of them is archived away.
"""

from __future__ import annotations

from typing import NamedTuple

from pymysql.cursors import Cursor

from plaza.infra import mysql
from plaza.reactions.model import ReactionKey

_BEFORE, _LAST = "redis_before", "redis_last"


class FailoverProgress(NamedTuple):
    """The last look at Redis: its ``epoch`` then, and the log's heads at the look before that
    one (``before``) and at that one (``last``). None: nobody has looked yet.

    ``recovering_epoch`` is the epoch whose failover is being followed, up to seq ``recovered_seq`` of the log.
    """

    epoch: int | None
    recovering_epoch: int | None
    recovered_seq: int | None
    before: int | None
    last: int | None


def read_progress() -> tuple[FailoverProgress, int]:
    """The last look, and the head of the log now. Raises MysqlDown."""
    [(*progress, head)] = mysql.fetch_all(
        """
        SELECT epochs.epoch, epochs.recovering_epoch, epochs.recovered_seq,
               (SELECT seq FROM watermark WHERE name = %s),
               (SELECT seq FROM watermark WHERE name = %s),
               (SELECT COALESCE(MAX(seq), 0) FROM reaction_log)
        FROM (SELECT 1 AS id) AS one
        LEFT JOIN redis_epoch AS epochs ON epochs.id = one.id
        """,
        (_BEFORE, _LAST),
    )
    return FailoverProgress(*progress), int(head)


def record_check(epoch: int, before: int, last: int) -> None:
    """A look is over, and nothing left to follow. All of it is kept, or nothing.

    Raises MysqlDown.
    """

    def save(cursor: Cursor) -> None:
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
            ON DUPLICATE KEY UPDATE epoch = VALUES(epoch), recovering_epoch = NULL, recovered_seq = NULL
            """,
            (epoch,),
        )

    mysql.run_in_transaction(save)


def record_progress(recovering_epoch: int, recovered_seq: int) -> None:
    """What follows a failover has come so far, and isn't done. Raises MysqlDown."""
    mysql.write(
        "UPDATE redis_epoch SET recovering_epoch = %s, recovered_seq = %s",
        (recovering_epoch, recovered_seq),
    )


def read_log_page(after: int, count: int) -> list[tuple[int, ReactionKey]]:
    """(seq, whose reaction) of the next ``count`` events after ``after``. Raises MysqlDown."""
    found = mysql.fetch_all(
        """
        SELECT seq, target_type, target_id, kind, actor_id
        FROM reaction_log
        WHERE seq > %s
        ORDER BY seq LIMIT %s
        """,
        (after, count),
    )
    return [(int(seq), ReactionKey(*key)) for seq, *key in found]
