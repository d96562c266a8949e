"""Sessions in MySQL: the record."""

from __future__ import annotations

from collections.abc import Sequence

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


def extend(token_sha256: bytes, expires_at_s: int) -> None:
    """Move the end of a session. Raises MysqlDown."""
    mysql.write(
        "UPDATE session SET expires_at = GREATEST(expires_at, FROM_UNIXTIME(%s))"
        " WHERE token_sha256 = %s",
        (expires_at_s, token_sha256),
    )
