"""Both logs in MySQL, as their readers see them: rows up to the head. A function runs one statement
and raises MysqlDown, unless stated otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from plaza.core.event_log.model import (
    EventOffset,
    LogHead,
    LogRow,
    OutgoingEvent,
    make_reaction_event,
)
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

MIN_HEAD_AGE_S = 2
"""How long the head of both logs is used before a reader moves it."""

GATE_WAIT_S = 1
"""How long a reader waits for the writers of a log, and later writers for the reader."""


def read_head() -> tuple[LogHead, bool]:
    """Return the head of both logs, and whether it is older than ``MIN_HEAD_AGE_S``."""
    [row] = mysql.fetch_all(
        f"""
        SELECT epoch, reaction_seq, event_seq,
               {_is_due()}
        FROM event_head
        WHERE id = 1
        """
    )
    return LogHead(*row[:3]), bool(row[3])


def claim_head() -> bool:
    """Return whether this process may move the head now: one reader at a time."""
    return bool(
        mysql.write(
            f"""
            UPDATE event_head
            SET claimed_at = UTC_TIMESTAMP(6)
            WHERE id = 1
              AND {_is_due()}
            """
        )
    )


def _is_due() -> str:
    """Return SQL for whether the head may be moved; a later time is of a clock that went back."""
    return f"""
        claimed_at NOT BETWEEN UTC_TIMESTAMP(6) - INTERVAL {MIN_HEAD_AGE_S:d} SECOND
            AND UTC_TIMESTAMP(6)
        """


def pass_reaction_barrier() -> tuple[int, int] | None:
    """Return (epoch, seq of the reaction log up to which no writer is open); None if one took
    longer than ``GATE_WAIT_S``. One transaction of three statements."""

    def work(cursor: Cursor) -> tuple[int, int] | None:
        cursor.execute("SELECT COALESCE(MAX(seq), 0) FROM reaction_log")
        [(seq,)] = cursor.fetchall()
        if not _wait_at(cursor, "SELECT epoch FROM log_barrier WHERE id = 1 FOR UPDATE"):
            return None
        [(epoch,)] = cursor.fetchall()
        return int(epoch), int(seq)

    return mysql.run_in_transaction(work)


def pass_event_barrier() -> int | None:
    """Return the seq of the event log up to which no writer is open; None as
    ``pass_reaction_barrier``. One transaction of three statements."""

    def work(cursor: Cursor) -> int | None:
        cursor.execute("SELECT COALESCE(MAX(seq), 0) FROM event_log")
        [(seq,)] = cursor.fetchall()
        if not _wait_at(cursor, "SELECT id FROM event_barrier WHERE id = 1 FOR UPDATE"):
            return None
        return int(seq)

    return mysql.run_in_transaction(work)


def _wait_at(cursor: Cursor, statement: str) -> bool:
    """Run the locking statement of a barrier; return False if it was not granted in time."""
    cursor.execute("SET SESSION innodb_lock_wait_timeout = %s", (GATE_WAIT_S,))
    return mysql.try_lock(cursor, statement, ())


def store_head(head: LogHead, minute: int) -> LogHead:
    """Store the head, which never goes back within an epoch, and the first one of each minute;
    return the newest. A head of an older epoch, read before a restore, is left. One transaction of
    three statements."""

    def work(cursor: Cursor) -> LogHead:
        # MySQL assigns from left to right, so the epoch is assigned last.
        cursor.execute(
            """
            UPDATE event_head
            SET reaction_seq = IF(%s > epoch, %s, GREATEST(reaction_seq, %s)),
                event_seq = IF(%s > epoch, %s, GREATEST(event_seq, %s)),
                epoch = %s
            WHERE id = 1
              AND epoch <= %s
            """,
            (
                *(head.epoch, head.reaction_seq, head.reaction_seq),
                *(head.epoch, head.event_seq, head.event_seq),
                *(head.epoch, head.epoch),
            ),
        )
        cursor.execute("SELECT epoch, reaction_seq, event_seq FROM event_head WHERE id = 1")
        [row] = cursor.fetchall()
        cursor.execute(
            """
            INSERT IGNORE INTO event_offset (minute, epoch, reaction_seq, event_seq)
            VALUES (%s, %s, %s, %s)
            """,
            (minute, *row),
        )
        return LogHead(*row)

    return mysql.run_in_transaction(work)


def find_offset(minute: int) -> EventOffset | None:
    """Return the newest offset that was taken before the end of a minute, None without one."""
    rows = mysql.fetch_all(
        """
        SELECT epoch, reaction_seq, event_seq, minute * 60
        FROM event_offset
        WHERE minute <= %s
        ORDER BY minute DESC LIMIT 1
        """,
        (minute,),
    )
    return EventOffset(*rows[0]) if rows else None


def delete_offsets(before_minute: int, limit: int) -> int:
    """Delete up to ``limit`` offsets from before a minute; return their number."""
    return mysql.write(
        f"DELETE FROM event_offset WHERE minute < %s LIMIT {limit:d}", (before_minute,)
    )


def read_reactions(after_seq: int, until_seq: int, since_us: int, limit: int) -> list[LogRow]:
    """Return up to ``limit`` rows of the reaction log by seq: above ``after_seq`` up to
    ``until_seq``, from the day of ``since_us`` on."""
    rows = mysql.fetch_all(
        f"""
        SELECT seq, version, target_type, target_id, kind, actor_id, change_by
        FROM reaction_log FORCE INDEX (by_seq)
        WHERE seq > %s
          AND seq <= %s
          AND create_date >= %s
        ORDER BY seq LIMIT {limit:d}
        """,
        (after_seq, until_seq, sql.from_us(since_us).date()),
    )
    return [
        LogRow(seq, at_us, make_reaction_event((of, target), kind, actor, at_us, change))
        for seq, at_us, of, target, kind, actor, change in rows
    ]


def read_events(after_seq: int, until_seq: int, since_us: int, limit: int) -> list[LogRow]:
    """Return up to ``limit`` rows of the event log by seq, as ``read_reactions``."""
    rows = mysql.fetch_all(
        f"""
        SELECT seq, kind, created_at, actor_id, target_type, target_id, resource_id, detail, key_id
        FROM event_log FORCE INDEX (PRIMARY)
        WHERE seq > %s
          AND seq <= %s
          AND created_at >= %s
        ORDER BY seq LIMIT {limit:d}
        """,
        (after_seq, until_seq, sql.from_us(since_us)),
    )
    return [_row(*row) for row in rows]


def read_before(at: datetime, limit: int) -> list[LogRow]:
    """Return the first ``limit`` rows of the event log that were stored before ``at``, by time. The
    newest row stays in MySQL for ever, so that it never assigns a seq twice."""
    rows = mysql.fetch_all(
        f"""
        SELECT seq, kind, created_at, actor_id, target_type, target_id, resource_id, detail, key_id
        FROM event_log FORCE INDEX (by_time)
        WHERE created_at < %s
          AND seq < (SELECT MAX(newest.seq) FROM event_log AS newest)
        ORDER BY created_at, seq LIMIT {limit:d}
        """,
        (at,),
    )
    return [_row(*row) for row in rows]


def delete(seqs: Sequence[int]) -> int:
    """Delete rows of the event log; return how many there were."""
    return mysql.write(f"DELETE FROM event_log WHERE seq IN ({sql.render_ids(seqs)})")


def _row(
    seq: int,
    kind: str,
    created_at: datetime,
    actor_id: int,
    target_type: str,
    target_id: int,
    resource_id: int,
    detail: str | None,
    key_id: str | None,
) -> LogRow:
    at_us = sql.to_us(created_at)
    target = target_type, target_id
    event = OutgoingEvent(kind, at_us, actor_id, target, resource_id, detail, key_id)
    return LogRow(seq, at_us, event)
