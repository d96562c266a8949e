"""Progress of the failover recovery in MySQL: the terms of Redis and the log's head at each check.

The heads are rows of ``watermark``: events after the lowest watermark are not archived. They are
heads of the sweeper that checked last, maybe at a deposed master: a recovery also reads the heads
of its data (``redis_failover_progress``). Each function raises MysqlDown.
"""

from __future__ import annotations

from typing import NamedTuple

from plaza.core.reactions.model import ReactionKey
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor

_BEFORE, _LAST = "redis_before", "redis_last"


class FailoverProgress(NamedTuple):
    """The last check of Redis: the digest of its ``terms``; the log's head at the check that was
    last kept, ``age_s`` ago (``last``), and at the one kept before it (``before``); None before the
    first check.

    ``recovering``: the terms whose failover is being recovered; ``recovered_seq``: up to where.
    """

    terms: int | None
    recovering: int | None
    recovered_seq: int | None
    before: int | None
    last: int | None
    age_s: int | None


def read_progress() -> tuple[FailoverProgress, int]:
    """Return the progress and the current head of the log."""
    [(*progress, head)] = mysql.fetch_all(
        """
        SELECT epochs.epoch, epochs.recovering_epoch, epochs.recovered_seq,
               (SELECT seq FROM watermark WHERE name = %s),
               (SELECT seq FROM watermark WHERE name = %s),
               TIMESTAMPDIFF(SECOND, epochs.checked_at, UTC_TIMESTAMP(6)),
               (SELECT COALESCE(MAX(seq), 0) FROM reaction_log)
        FROM (SELECT 1 AS id) AS one
        LEFT JOIN redis_epoch AS epochs ON epochs.id = one.id
        """,
        (_BEFORE, _LAST),
    )
    return FailoverProgress(*progress), int(head)


def end_recovery(stored: int | None, terms: int) -> None:
    """End the recovery of a failover that began while ``stored`` was stored, unless a sweeper at
    another master stored its term since. Keep the heads of the checks before it."""
    mysql.write(
        """
        UPDATE redis_epoch
        SET epoch = %s, recovering_epoch = NULL, recovered_seq = NULL
        WHERE epoch = %s
        """,
        (terms, stored),
    )


def record_check(stored: int | None, terms: int, before: int, last: int) -> None:
    """Keep the heads of a check, and its terms where ``stored`` is stored, in one transaction."""

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
            INSERT INTO redis_epoch (id, epoch, checked_at)
            VALUES (1, %s, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE
                epoch = IF(epoch = %s, VALUES(epoch), epoch), checked_at = VALUES(checked_at)
            """,
            (terms, stored),
        )

    mysql.run_in_transaction(save)


def record_progress(stored: int | None, recovering: int, recovered_seq: int) -> None:
    """Store how far an unfinished recovery is, as ``end_recovery``."""
    mysql.write(
        """
        UPDATE redis_epoch
        SET recovering_epoch = %s, recovered_seq = %s
        WHERE epoch = %s
        """,
        (recovering, recovered_seq, stored),
    )


def read_log_page(after: int, count: int) -> list[tuple[int, ReactionKey]]:
    """Return (seq, key) of at most ``count`` events after seq ``after``."""
    rows = mysql.fetch_all(
        """
        SELECT seq, target_type, target_id, kind, actor_id
        FROM reaction_log
        WHERE seq > %s
        ORDER BY seq LIMIT %s
        """,
        (after, count),
    )
    return [(int(seq), ReactionKey(*key)) for seq, *key in rows]
