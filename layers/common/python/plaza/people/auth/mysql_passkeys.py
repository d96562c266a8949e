"""Passkeys and their codes in MySQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.people.auth.passkeys import MAX_PASSKEYS, Passkey

_COLUMNS = (
    "credential_id, user_id, public_key, sign_count, name, created_at, used_at, may_be_synced"
)


def replace_code(user_id: int, code_sha256: bytes, ttl_s: int) -> None:
    """Store the code of a user, in place of the one before. One statement. Raises MysqlDown."""
    mysql.write(
        """
        INSERT INTO passkey_code (user_id, code_sha256, expires_at)
        VALUES (%s, %s, UTC_TIMESTAMP(6) + INTERVAL %s SECOND)
        ON DUPLICATE KEY UPDATE code_sha256 = VALUES(code_sha256), expires_at = VALUES(expires_at)
        """,
        (user_id, code_sha256, ttl_s),
    )


def find_user_of_code(code_sha256: bytes) -> int | None:
    """Return the user of a code, None without one. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        "SELECT user_id FROM passkey_code WHERE code_sha256 = %s AND expires_at > UTC_TIMESTAMP(6)",
        (code_sha256,),
    )
    return rows[0][0] if rows else None


def insert(
    passkey: Passkey, *, code_sha256: bytes | None = None, session_sha256: bytes | None = None
) -> bool | None:
    """Store a passkey of a user, whose code is used up, or else whose session is open; return None
    if neither is, or if the passkey is stored, False if the user has too many. One transaction of
    four statements. Raises MysqlDown."""

    def work(cursor: Cursor) -> bool | None:
        if not _lock_user(cursor, passkey.user_id):
            return None
        if not cursor.execute(
            """
            DELETE FROM passkey_code
            WHERE user_id = %s
              AND code_sha256 = %s
              AND expires_at > UTC_TIMESTAMP(6)
            """
            if session_sha256 is None
            else """
            SELECT 1
            FROM session
            WHERE user_id = %s
              AND token_sha256 = %s
              AND expires_at > UTC_TIMESTAMP(6)
            """,
            (passkey.user_id, session_sha256 or code_sha256),
        ):
            return None
        cursor.execute("SELECT COUNT(*) FROM passkey WHERE user_id = %s", (passkey.user_id,))
        [(stored,)] = cursor.fetchall()
        if stored >= MAX_PASSKEYS:
            return False
        inserted = cursor.execute(
            f"""
            INSERT IGNORE INTO passkey (credential_sha256, {_COLUMNS})
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
            """,
            (passkey.sha256, *passkey),
        )
        return True if inserted else None

    return mysql.run_in_transaction(work)


def read(credential_sha256: bytes) -> Passkey | None:
    """Return a passkey, None without one. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"SELECT {_COLUMNS} FROM passkey WHERE credential_sha256 = %s", (credential_sha256,)
    )
    return next(iter(_parse(rows)), None)


def list_of_user(user_id: int) -> list[Passkey]:
    """Return the passkeys of a user, the oldest first. One statement. Raises MysqlDown."""
    return _parse(
        mysql.fetch_all(
            f"""
            SELECT {_COLUMNS}
            FROM passkey
            WHERE user_id = %s
            ORDER BY created_at, credential_sha256
            LIMIT %s
            """,
            (user_id, MAX_PASSKEYS),
        )
    )


def mark_used(cursor: Cursor, credential_sha256: bytes, before: int, sign_count: int) -> bool:
    """Store the counter of a sign-in; return False if another sign-in has changed it, or the
    passkey has ended. It does not end until the transaction does. One statement."""
    changed = cursor.execute(
        """
        UPDATE passkey
        SET sign_count = %s, used_at = UTC_TIMESTAMP(6)
        WHERE credential_sha256 = %s
          AND sign_count = %s
        """,
        (sign_count, credential_sha256, before),
    )
    return changed > 0


def delete(user_id: int, passkey_id: str) -> bool:
    """Delete a passkey of a user; return whether it existed. One statement. Raises MysqlDown."""
    deleted = mysql.write(
        """
        DELETE FROM passkey
        WHERE user_id = %s
          AND LEFT(LOWER(HEX(credential_sha256)), 32) = %s
        """,
        (user_id, passkey_id),
    )
    return deleted > 0


def delete_of_user(user_id: int) -> int:
    """Delete the passkeys and the code of a user, and end the sessions, whose rows stay; return how
    many passkeys and codes there were. What signs in or enrolls at the same time is among them, or
    refused. One transaction of four statements. Raises MysqlDown."""

    def work(cursor: Cursor) -> int:
        _lock_user(cursor, user_id)
        deleted = cursor.execute("DELETE FROM passkey_code WHERE user_id = %s", (user_id,))
        deleted += cursor.execute("DELETE FROM passkey WHERE user_id = %s", (user_id,))
        cursor.execute(
            """
            UPDATE session
            SET expires_at = LEAST(expires_at, UTC_TIMESTAMP(6))
            WHERE user_id = %s
            """,
            (user_id,),
        )
        return deleted

    return mysql.run_in_transaction(work)


def _lock_user(cursor: Cursor, user_id: int) -> bool:
    """Lock a user until the transaction ends; return False if there is none. One statement."""
    return bool(cursor.execute("SELECT 1 FROM user WHERE id = %s FOR UPDATE", (user_id,)))


def delete_expired_codes(limit: int) -> int:
    """Delete at most ``limit`` codes that are over; return how many. Raises MysqlDown."""
    return mysql.write(
        """
        DELETE FROM passkey_code
        WHERE expires_at < UTC_TIMESTAMP(6)
        ORDER BY expires_at
        LIMIT %s
        """,
        (limit,),
    )


def _parse(rows: Iterable[Any]) -> list[Passkey]:
    parsed = []
    for credential_id, user_id, public_key, count, name, created_at, used_at, synced in rows:
        ids = bytes(credential_id), user_id, bytes(public_key)
        parsed.append(Passkey(*ids, count, name, created_at, used_at, bool(synced)))
    return parsed
