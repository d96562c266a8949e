"""Keys of servers in MySQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.people.auth.server_keys import (
    MAX_VALID_PER_NAME,
    PresentedKey,
    ServerKey,
    TooManyServerKeys,
)

_COLUMNS = "key_id, secret_sha256, name, scopes, requests_per_s, created_at, used_at, ended_at"
MAX_LISTED = 1_000


def read(key_id: str) -> ServerKey | None:
    """Return a key, None without one. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(f"SELECT {_COLUMNS} FROM server_key WHERE key_id = %s", (key_id,))
    return next(iter(_parse(rows)), None)


def list_all() -> list[ServerKey]:
    """Return the keys, valid ones first, newest first. One statement. Raises MysqlDown."""
    return _parse(
        mysql.fetch_all(
            f"""
            SELECT {_COLUMNS}
            FROM server_key
            ORDER BY ended_at IS NOT NULL, created_at DESC, key_id
            LIMIT %s
            """,
            (MAX_LISTED,),
        )
    )


def insert(key: PresentedKey, name: str, scopes: Iterable[str], requests_per_s: int) -> None:
    """Store a new key. One transaction of two statements. Raises TooManyServerKeys if the name has
    two valid ones, MysqlDown."""

    def work(cursor: Cursor) -> None:
        cursor.execute(
            """
            INSERT INTO server_key
              (key_id, secret_sha256, name, scopes, requests_per_s, created_at)
            VALUES (%s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
            """,
            (*key, name, ",".join(sorted(scopes)), requests_per_s),
        )
        # After the INSERT: a lock on no rows keeps no other process from inserting the first ones.
        cursor.execute(
            "SELECT key_id FROM server_key WHERE name = %s AND ended_at IS NULL FOR UPDATE", (name,)
        )
        if len(cursor.fetchall()) > MAX_VALID_PER_NAME:
            raise TooManyServerKeys(name)

    mysql.run_in_transaction(work)


def end(key_id: str) -> bool:
    """End a key; return whether it exists. One statement. Raises MysqlDown."""
    changed = mysql.write(
        "UPDATE server_key SET ended_at = COALESCE(ended_at, UTC_TIMESTAMP(6)) WHERE key_id = %s",
        (key_id,),
    )
    return changed > 0 or read(key_id) is not None


def mark_used(key_id: str) -> None:
    """Store that a key is used now, unless it is stored for the last ten minutes. One statement.
    Raises MysqlDown."""
    mysql.write(
        """
        UPDATE server_key
        SET used_at = UTC_TIMESTAMP(6)
        WHERE key_id = %s
          AND (used_at IS NULL OR used_at < UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE)
        """,
        (key_id,),
    )


def _parse(rows: Iterable[tuple[Any, ...]]) -> list[ServerKey]:
    return [
        ServerKey(key_id, sha, name, frozenset(scopes.split(",")), per_s, *times)
        for key_id, sha, name, scopes, per_s, *times in rows
    ]
