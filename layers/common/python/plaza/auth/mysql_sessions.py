"""Sessions in MySQL: the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pymysql.cursors import Cursor

from plaza.auth.sessions import Session
from plaza.infra import mysql


def insert(rows: Sequence[tuple[bytes, Session]]) -> None:
    """Store sessions by the hash of their token. One statement. Raises MysqlDown."""
    mysql.write(
        "INSERT IGNORE INTO session (token_sha256, user_id, role, expires_at) VALUES "
        + ", ".join(["(%s, %s, %s, FROM_UNIXTIME(%s))"] * len(rows)),
        [part for sha, s in rows for part in (sha, s.user_id, s.role, s.expires_at_s)],
    )


def read(token_sha256: bytes) -> Session | None:
    """The session of a token that has not expired. Raises MysqlDown."""
    rows = mysql.fetch_all(
        "SELECT user_id, role, FLOOR(UNIX_TIMESTAMP(expires_at)) FROM session"
        " WHERE token_sha256 = %s AND expires_at > UTC_TIMESTAMP(6)",
        (token_sha256,),
    )
    return Session(rows[0][0], rows[0][1], int(rows[0][2])) if rows else None


def extend(token_sha256: bytes, expires_at_s: int) -> bool:
    """Move the end of a session; False when there was nothing to move. Raises MysqlDown."""
    changed = mysql.write(
        "UPDATE session SET expires_at = GREATEST(expires_at, FROM_UNIXTIME(%s))"
        " WHERE token_sha256 = %s AND expires_at > UTC_TIMESTAMP(6)",
        (expires_at_s, token_sha256),
    )
    return changed > 0


def delete(token_sha256: bytes) -> bool:
    """Delete a session; False when there was none. Raises MysqlDown."""
    return mysql.write("DELETE FROM session WHERE token_sha256 = %s", (token_sha256,)) > 0


def delete_all(
    user_id: int, token_sha256: bytes, before_the_end: Callable[[list[bytes]], None]
) -> None:
    """Delete every session of a user, if the one of ``token_sha256`` is among them.

    ``before_the_end`` is told the others before the transaction ends: when it fails, nothing is
    deleted. Raises MysqlDown and what it raises.
    """

    def work(cursor: Cursor) -> None:
        cursor.execute("SELECT token_sha256 FROM session WHERE user_id = %s FOR UPDATE", (user_id,))
        found = [sha for (sha,) in cursor.fetchall()]
        if token_sha256 not in found:
            return
        places = ", ".join(["%s"] * len(found))
        cursor.execute(f"DELETE FROM session WHERE token_sha256 IN ({places})", found)
        before_the_end([sha for sha in found if sha != token_sha256])

    mysql.atomically(work)
