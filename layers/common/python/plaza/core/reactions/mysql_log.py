"""The reaction log in MySQL: its lock, epoch, head and entries, and the terms that share its lock.
Unless stated otherwise, a function runs one statement; without a cursor it raises MysqlDown.

``db_version`` is the version of a counter's row plus the epoch of MySQL. The epoch is raised when
MySQL is restored to an earlier moment, so that versions never repeat.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from plaza.core.reactions.model import Commit, CounterChange, Target
from plaza.core.reactions.mysql_rows import EPOCH_NOW, VERSIONS_PER_EPOCH
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.observability import record

LOCK_TIMEOUT_S = 2  # consumers wait behind the exclusive lock of the log
_DAY_US = 86_400_000_000


class LogLock(NamedTuple):
    """The first version of the epoch, and first_slot -> term of each master of Redis as the last
    recovery stored them (``term_guard``)."""

    epoch: int
    terms: Mapping[int, str]


SHARE_LOG_LOCK = """
        SELECT log_barrier.epoch, redis_term.first_slot, redis_term.term
        FROM log_barrier
        LEFT JOIN redis_term ON TRUE
        WHERE log_barrier.id = 1
        LOCK IN SHARE MODE
        """
"""Locks the log and the terms, shared, until the commit, for ``lock_of``.

Run it before an append: when a reader gets the exclusive lock, all earlier appends are committed
(docs/decisions/0022-read-the-log-behind-a-barrier.md).
"""


def lock_of(rows: Sequence[mysql.Row]) -> LogLock:
    """Return the epoch and the terms from the rows of ``SHARE_LOG_LOCK``."""
    if not rows:
        raise LookupError("log_barrier has no row: readers could not wait for this transaction")
    return LogLock(
        int(rows[0][0]) * VERSIONS_PER_EPOCH,
        {first_slot: term for _, first_slot, term in rows if term is not None},
    )


def succeed_term(cursor: Cursor, first_slot: int, predecessor: str, term: str) -> None:
    """Replace the term of a master by its successor's, unless another one did."""
    cursor.execute(
        """
        UPDATE redis_term
        SET term = %s
        WHERE first_slot = %s AND term = %s
        """,
        (term, first_slot, predecessor),
    )


def replace_terms(terms: Mapping[int, str]) -> None:
    """Store first_slot -> term of all masters, behind all transactions that passed the log barrier.
    Three statements, six if other terms were stored. Raises MysqlDown as ``wait_for_log_writers``.

    Then the next run of the recovery begins as after a failover: this process may be connected to
    an earlier master, and be killed before it recovers. The random epoch keeps a slower run, which
    began before, from ending that recovery.
    """

    def replace(cursor: Cursor) -> None:
        take_log_lock(cursor)
        cursor.execute("SELECT first_slot, term FROM redis_term")
        if dict(cursor.fetchall()) == terms:
            return
        cursor.execute(
            "UPDATE redis_epoch SET epoch = %s, recovering_epoch = NULL, recovered_seq = NULL",
            (-1 - random.getrandbits(60),),  # no digest of terms is negative
        )
        cursor.execute("DELETE FROM redis_term")
        cursor.executemany(
            "INSERT INTO redis_term (first_slot, term) VALUES (%s, %s)", sorted(terms.items())
        )

    mysql.run_in_transaction(replace)


def read_epoch(cursor: Cursor) -> int:
    """Return the first version of the current epoch."""
    cursor.execute(f"SELECT {EPOCH_NOW}")
    [(epoch,)] = cursor.fetchall()
    return int(epoch)


def raise_epoch() -> int:
    """Raise the epoch by one and return it; if ``log_barrier`` has no row, insert it with an epoch
    above all that the log has. One transaction. Raises MysqlDown while writers hold the barrier."""

    def work(cursor: Cursor) -> int:
        if cursor.execute("SELECT epoch FROM log_barrier WHERE id = 1 FOR UPDATE"):
            cursor.execute("UPDATE log_barrier SET epoch = epoch + 1 WHERE id = 1")
        else:
            cursor.execute(
                f"""
                INSERT INTO log_barrier (id, epoch)
                SELECT 1, COALESCE(MAX(db_version) DIV {VERSIONS_PER_EPOCH:d}, 0) + 1
                FROM reaction_log
                """
            )
        cursor.execute("SELECT epoch FROM log_barrier WHERE id = 1")
        [(epoch,)] = cursor.fetchall()
        return int(epoch)

    epoch = mysql.run_in_transaction(work)
    record("epoch_raised", epoch=epoch)
    return epoch


def wait_for_log_writers() -> None:
    """Wait until all transactions that append to the log are committed or rolled back; later ones
    get a higher seq. Raises MysqlDown when a transaction takes longer than 2 s, three times."""

    mysql.run_in_transaction(take_log_lock)


def take_log_lock(cursor: Cursor) -> None:
    """Take the log barrier, exclusively, until the commit. Two statements."""
    cursor.execute("SET SESSION innodb_lock_wait_timeout = %s", (LOCK_TIMEOUT_S,))
    if not cursor.execute("SELECT id FROM log_barrier WHERE id = 1 FOR UPDATE"):
        raise LookupError("log_barrier has no row: writers cannot be waited for")


def read_log_head() -> int:
    """Return the highest seq in the log, 0 when it is empty."""
    return int(mysql.fetch_all("SELECT COALESCE(MAX(seq), 0) FROM reaction_log")[0][0])


def read_watermarks() -> dict[str, int]:
    """Return reader of the log -> the last event that it has read."""
    return dict(mysql.fetch_all("SELECT name, seq FROM watermark ORDER BY name"))


def find_log_page_end(cursor: Cursor, after_seq: int, head: int, size: int) -> int:
    """Return the seq at which a page of ``size`` events ends, ``head`` at the most. One statement.

    Seqs have gaps of any width.
    """
    cursor.execute(
        f"""
        SELECT COUNT(*), MAX(seq)
        FROM (
            SELECT seq
            FROM reaction_log FORCE INDEX (by_seq)
            WHERE seq > %s
              AND seq <= %s
            ORDER BY seq LIMIT {size:d}
        ) AS page
        """,
        (after_seq, head),
    )
    [(count, last)] = cursor.fetchall()
    return int(last) if count == size else head


def read_latest_targets(limit: int) -> list[tuple[str, Target]]:
    """Return (kind, target) of the ``limit`` newest events of the log, newest first."""
    rows = mysql.fetch_all(
        f"""
        SELECT kind, target_type, target_id
        FROM reaction_log FORCE INDEX (by_seq)
        ORDER BY seq DESC LIMIT {limit:d}
        """
    )
    return [(kind, Target(*target)) for kind, *target in rows]


def read_hottest_targets(limit: int) -> list[tuple[str, Target]]:
    """Return (kind, target) of the most events of today and yesterday (UTC), the hottest first.
    Reads the log of these days."""
    rows = mysql.fetch_all(
        f"""
        SELECT kind, target_type, target_id
        FROM reaction_log
        WHERE create_date >= UTC_DATE() - INTERVAL 1 DAY
        GROUP BY target_type, target_id, kind
        ORDER BY COUNT(*) DESC, target_id DESC LIMIT {limit:d}
        """
    )
    return [(kind, Target(*target)) for kind, *target in rows]


def render_log(changes: Sequence[CounterChange], commits: Sequence[Commit]) -> str:
    """Render the entries of ``changes`` as rows of the log. ``commits``: the commit of each of
    ``changes``; each row has its db_version and the total after it."""
    rows = [
        "%s,%d,%d,%d,%d,%s,'%s',%s)"
        % (
            key,
            event.key[3],
            version_us,
            event.on,
            change_by,
            counted,
            _utc_day(version_us // _DAY_US),
            sql.render_request_id(event.request_id),
        )
        for change, commit in zip(changes, commits, strict=True)
        for key, counted in ((_begin_row(change), "%d,%d" % (commit.db_version, commit.total)),)
        for event, version_us, change_by in change.entries
    ]
    return ",".join(rows)


def append_log(cursor: Cursor, rows: str) -> None:
    """Append the rows of ``render_log`` to the log, each event once."""
    mysql.send(
        cursor,
        f"""
        INSERT IGNORE INTO reaction_log (target_type, target_id, kind, actor_id, version, state,
            change_by, db_version, total, create_date, request_id)
        VALUES {rows}
        """,
    )


def _begin_row(change: CounterChange) -> str:
    """Render the first three columns of the rows of a target and kind."""
    return "('%s',%d,'%s'" % (*change.target, change.kind.name)


@lru_cache(maxsize=64)
def _utc_day(days: int) -> str:
    return datetime.fromtimestamp(days * 86_400, UTC).date().isoformat()
