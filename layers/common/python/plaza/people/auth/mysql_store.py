"""Sessions in MySQL, the record."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime import clock
from plaza.people.auth.sessions import KEPT_S, OPERATE, WEAK_METHODS, Opening, OwnSession, Session

_ROLE = """
    IF(session.method IN ({}), 'user', COALESCE(user.role, 'user'))
    """.format(", ".join(f"'{method}'" for method in WEAK_METHODS))


def insert(
    rows: Sequence[tuple[bytes, int, int]],
    opening: Opening = OPERATE,
    age_s: int = 0,
    cursor: Cursor | None = None,
) -> None:
    """Store (hash, user id, expiry in s since 1970), as if created ``age_s`` ago; in the
    transaction of ``cursor``, if there is one. One statement. Raises MysqlDown."""
    values = """
        (%s, %s, FROM_UNIXTIME(%s), UTC_TIMESTAMP(6) - INTERVAL %s SECOND, %s, UTC_TIMESTAMP(6), %s)
        """
    execute = mysql.write if cursor is None else cursor.execute
    execute(
        f"""
        INSERT IGNORE INTO session
            (token_sha256, user_id, expires_at, created_at, method, signed_in_at, client)
        VALUES {", ".join([values] * len(rows))}
        """,
        [part for row in rows for part in (*row, age_s, *opening)],
    )


def read(token_sha256: bytes, max_age_s: int) -> Session | None:
    """Return the session of a token unless it expired or is older than ``max_age_s``, else None.

    It has the current role of its user, or ``user`` if its method is a weak one. One statement.
    Raises MysqlDown.
    """
    checked_at_s = int(clock.now_s())  # before the statement: the role may change during it
    rows = mysql.fetch_all(
        f"""
        SELECT session.user_id, {_ROLE},
               FLOOR(UNIX_TIMESTAMP(session.expires_at)),
               FLOOR(UNIX_TIMESTAMP(session.created_at + INTERVAL %s SECOND)),
               FLOOR(UNIX_TIMESTAMP(session.signed_in_at))
        FROM session LEFT JOIN user ON user.id = session.user_id
        WHERE session.token_sha256 = %s
          AND session.expires_at > UTC_TIMESTAMP(6)
          AND session.created_at > UTC_TIMESTAMP(6) - INTERVAL %s SECOND
        """,
        (max_age_s, token_sha256, max_age_s),
    )
    if not rows:
        return None
    user_id, role, expires_at_s, ends_at_s, signed_in_at_s = rows[0]
    return Session(
        user_id, role, int(expires_at_s), int(ends_at_s), checked_at_s, int(signed_in_at_s)
    )


def list_of_user(user_id: int, max_age_s: int, limit: int) -> list[OwnSession]:
    """Return up to ``limit`` open sessions of a user, the newest first. One statement. Raises
    MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT session.token_sha256, {_ROLE}, session.method, session.client,
               session.signed_in_at, session.expires_at
        FROM session LEFT JOIN user ON user.id = session.user_id
        WHERE session.user_id = %s
          AND session.expires_at > UTC_TIMESTAMP(6)
          AND session.created_at > UTC_TIMESTAMP(6) - INTERVAL %s SECOND
        ORDER BY session.signed_in_at DESC, session.token_sha256
        LIMIT %s
        """,
        (user_id, max_age_s, limit),
    )
    return [OwnSession(*row) for row in rows]


def find_of_user(user_id: int, name: str) -> bytes | None:
    """Return the hash of the token of a user's session, by its ``name_session``, also of one that
    has ended and is still stored. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT token_sha256
        FROM session
        WHERE user_id = %s
          AND LEFT(SHA2(token_sha256, 256), 32) = %s
        """,
        (user_id, name),
    )
    return rows[0][0] if rows else None


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


def expire(token_sha256: bytes) -> None:
    """End a session, whose row stays. One statement. Raises MysqlDown."""
    mysql.write(
        """
        UPDATE session
        SET expires_at = LEAST(expires_at, UTC_TIMESTAMP(6))
        WHERE token_sha256 = %s
        """,
        (token_sha256,),
    )


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
