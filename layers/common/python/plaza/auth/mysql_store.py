"""Sessions in MySQL, the record."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.auth.sessions import KEPT_S, Session
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime import clock


def insert(rows: Sequence[tuple[bytes, int, int]], age_s: int = 0) -> None:
    """Store (hash, user id, expiry in s since 1970), as opened ``age_s`` ago. One statement.
    Raises MysqlDown."""
    values = "(%s, %s, FROM_UNIXTIME(%s), UTC_TIMESTAMP(6) - INTERVAL %s SECOND)"
    mysql.write(
        f"""
        INSERT IGNORE INTO session (token_sha256, user_id, expires_at, created_at)
        VALUES {", ".join([values] * len(rows))}
        """,
        [part for row in rows for part in (*row, age_s)],
    )


def read(token_sha256: bytes, max_age_s: int) -> Session | None:
    """Return the session of a token unless it expired or is older than ``max_age_s``, else None.

    It has the current role of its user. One statement. Raises MysqlDown.
    """
    checked_at_s = int(clock.now_s())  # before the statement: the role may change during it
    rows = mysql.fetch_all(
        """
        SELECT session.user_id, COALESCE(user.role, 'user'),
               FLOOR(UNIX_TIMESTAMP(session.expires_at)),
               FLOOR(UNIX_TIMESTAMP(session.created_at + INTERVAL %s SECOND))
        FROM session LEFT JOIN user ON user.id = session.user_id
        WHERE session.token_sha256 = %s
          AND session.expires_at > UTC_TIMESTAMP(6)
          AND session.created_at > UTC_TIMESTAMP(6) - INTERVAL %s SECOND
        """,
        (max_age_s, token_sha256, max_age_s),
    )
    if not rows:
        return None
    user_id, role, expires_at_s, ends_at_s = rows[0]
    return Session(user_id, role, int(expires_at_s), int(ends_at_s), checked_at_s)


def extend(token_sha256: bytes, expires_at_s: int) -> bool:
    """Extend a session; return False if it has expired or does not exist. Raises MysqlDown."""
    changed = mysql.write(
        """
        UPDATE session
        SET expires_at = GREATEST(expires_at, FROM_UNIXTIME(%s))
        WHERE token_sha256 = %s
          AND expires_at > UTC_TIMESTAMP(6)
        """,
        (expires_at_s, token_sha256),
    )
    return changed > 0


def delete(token_sha256: bytes) -> bool:
    """Delete a session; return whether it existed. Raises MysqlDown."""
    return mysql.write("DELETE FROM session WHERE token_sha256 = %s", (token_sha256,)) > 0


def expire_all(user_id: int, *, own: bytes | None = None) -> list[bytes]:
    """End every session of a user, with ``own`` only if ``own`` is stored; return the hashes of
    their tokens, with those that ended before and are still stored.

    Their rows stay. One transaction of two statements. Raises MysqlDown.
    """

    def work(cursor: Cursor) -> list[bytes]:
        cursor.execute("SELECT token_sha256 FROM session WHERE user_id = %s FOR UPDATE", (user_id,))
        hashes = [sha for (sha,) in cursor.fetchall()]
        if not hashes or (own is not None and own not in hashes):
            return []
        cursor.execute(
            f"""
            UPDATE session
            SET expires_at = LEAST(expires_at, UTC_TIMESTAMP(6))
            WHERE token_sha256 IN ({sql.placeholders(len(hashes))})
            """,
            hashes,
        )
        return hashes

    return mysql.run_in_transaction(work)


def delete_all(token_sha256s: Sequence[bytes]) -> None:
    """Delete sessions. One statement. Raises MysqlDown."""
    if token_sha256s:
        marks = sql.placeholders(len(token_sha256s))
        mysql.write(f"DELETE FROM session WHERE token_sha256 IN ({marks})", token_sha256s)


def delete_some(limit: int) -> int:
    """Delete at most ``limit`` sessions, open ones, too; return how many. Raises MysqlDown."""
    return mysql.write("DELETE FROM session ORDER BY token_sha256 LIMIT %s", (limit,))


def delete_expired(limit: int) -> int:
    """Delete at most ``limit`` sessions that ended ``KEPT_S`` ago; return how many. Raises
    MysqlDown."""
    return mysql.write(
        """
        DELETE FROM session
        WHERE expires_at < UTC_TIMESTAMP(6) - INTERVAL %s SECOND
        ORDER BY expires_at
        LIMIT %s
        """,
        (KEPT_S, limit),
    )
