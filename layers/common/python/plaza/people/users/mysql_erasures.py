"""Erasures of accounts in MySQL: the record, and the list of work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.people.users.model import KEPT_OPEN_S, SETTLE_S, Erasure

# requested_at: from when on passes erase, of a closed account later than its user asked for it.
_COLUMNS = (
    "user_id, requested_at, account_closed_at, erased_at, closed_at,"
    " requested_at > UTC_TIMESTAMP(6)"
)
_RETRY_S, _MAX_PAUSE_S = 60, 86_400


def insert(cursor: Cursor, user_id: int, wait_s: int) -> Erasure:
    """Request an erasure that begins in ``wait_s``, or as requested before if that is earlier; a
    pass is due then, or now. Return it. Two statements."""
    cursor.execute(
        """
        INSERT INTO erasure (user_id, requested_at, next_pass_at, account_closed_at)
        VALUES (%s, UTC_TIMESTAMP(6) + INTERVAL %s SECOND,
            UTC_TIMESTAMP(6) + INTERVAL %s SECOND, IF(%s, UTC_TIMESTAMP(6), NULL))
        ON DUPLICATE KEY UPDATE requested_at = LEAST(requested_at, VALUES(requested_at)),
            next_pass_at = GREATEST(requested_at, UTC_TIMESTAMP(6)), closed_at = NULL
        """,
        (user_id, wait_s, wait_s, wait_s > 0),
    )
    cursor.execute(f"SELECT {_COLUMNS} FROM erasure WHERE user_id = %s", (user_id,))
    [erasure] = _parse(cursor.fetchall())
    return erasure


def exists(user_id: int) -> bool:
    """Return whether an erasure of a user was requested. One statement. Raises MysqlDown."""
    return bool(mysql.fetch_all("SELECT 1 FROM erasure WHERE user_id = %s", (user_id,)))


def find_erased(user_ids: Iterable[int]) -> set[int]:
    """Return the ``user_ids`` with an erasure. One statement at most. Raises MysqlDown."""
    numbers = sql.render_ids(user_ids)
    if not numbers:
        return set()
    rows = mysql.fetch_all(f"SELECT user_id FROM erasure WHERE user_id IN ({numbers})")
    return {user_id for (user_id,) in rows}


def find_due(limit: int) -> list[Erasure]:
    """Return up to ``limit`` erasures whose next pass is due. One statement. Raises MysqlDown."""
    return _parse(
        mysql.fetch_all(
            f"""
            SELECT {_COLUMNS}
            FROM erasure
            WHERE closed_at IS NULL
              AND next_pass_at <= UTC_TIMESTAMP(6)
            ORDER BY next_pass_at
            LIMIT %s
            """,
            (limit,),
        )
    )


def reopen_returned(remains: Iterable[str], limit: int) -> list[int]:
    """Open the closed erasures of users of whom MySQL has something again; return their users.

    ``remains``: conditions, each true if ``{user_id}`` has rows of a context. Looks at each closed
    erasure once a day, at ``limit`` of them in a call. Three statements at most. Raises MysqlDown.
    """
    has_rows = " OR ".join(remains).format(user_id="erasure.user_id")
    rows = mysql.fetch_all(
        f"""
        SELECT user_id, {has_rows}
        FROM erasure FORCE INDEX (by_pass)
        WHERE next_pass_at <= UTC_TIMESTAMP(6)
          AND closed_at IS NOT NULL
        ORDER BY next_pass_at
        LIMIT {limit:d}
        """
    )
    returned = [user_id for user_id, is_back in rows if is_back]
    if returned:
        mysql.write(
            f"""
            UPDATE erasure
            SET closed_at = NULL
            WHERE user_id IN ({sql.render_ids(returned)})
            """
        )
    if gone := [user_id for user_id, is_back in rows if not is_back]:
        mysql.write(
            f"""
            UPDATE erasure
            SET next_pass_at = UTC_TIMESTAMP(6) + INTERVAL 1 DAY
            WHERE user_id IN ({sql.render_ids(gone)})
              AND closed_at IS NOT NULL
            """
        )
    return returned


def end_pass(user_id: int, *, clean: bool) -> None:
    """Record a pass over all data of a user; ``clean``: it found nothing. The pause before the next
    one is as long as the erasure is old, up to a day. One statement. Raises MysqlDown."""
    age_s = "TIMESTAMPDIFF(SECOND, requested_at, UTC_TIMESTAMP(6))"
    mysql.write(
        f"""
        UPDATE erasure
        SET erased_at = IF(%s AND {age_s} >= %s, COALESCE(erased_at, UTC_TIMESTAMP(6)), erased_at),
            closed_at = IF(%s AND {age_s} >= %s, UTC_TIMESTAMP(6), NULL),
            next_pass_at = UTC_TIMESTAMP(6)
              + INTERVAL IF(%s, LEAST(GREATEST({age_s}, %s), %s), %s) SECOND
        WHERE user_id = %s
        """,
        (clean, SETTLE_S, clean, KEPT_OPEN_S, clean, SETTLE_S, _MAX_PAUSE_S, _RETRY_S, user_id),
    )


def measure() -> tuple[int, int]:
    """Return (number, age in seconds of the oldest) of the users that are being erased. One
    statement. Raises MysqlDown."""
    [(number, age_s)] = mysql.fetch_all(
        """
        SELECT COUNT(*), COALESCE(TIMESTAMPDIFF(SECOND, MIN(requested_at), UTC_TIMESTAMP(6)), 0)
        FROM erasure
        WHERE closed_at IS NULL
          AND erased_at IS NULL
          AND requested_at <= UTC_TIMESTAMP(6)
        """
    )
    return number, age_s


def read_latest(limit: int) -> list[Erasure]:
    """Return the latest erasures, those that are not closed first. One statement. Raises
    MysqlDown."""
    return _parse(
        mysql.fetch_all(
            f"""
            SELECT {_COLUMNS}
            FROM erasure
            ORDER BY closed_at IS NOT NULL, requested_at DESC
            LIMIT %s
            """,
            (limit,),
        )
    )


def _parse(rows: Iterable[tuple[Any, ...]]) -> list[Erasure]:
    return [Erasure(*row) for row in rows]
