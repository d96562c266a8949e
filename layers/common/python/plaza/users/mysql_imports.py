"""Imported users in MySQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.infra.mysql import sql
from plaza.infra.mysql.mysql import Cursor


class ImportedUser(NamedTuple):
    """A user of another system. ``identity``: (issuer, subject), None without one; ``created_us``:
    microseconds since 1970."""

    id: int
    nickname: str
    created_us: int
    identity: tuple[str, str] | None = None


def insert(cursor: Cursor, users: Sequence[ImportedUser]) -> set[int]:
    """Insert users and identities that do not exist; return the ids of users whose identity is
    another user's, without inserting them. Three statements at most."""
    refused: set[int] = set()
    if identities := [user.identity for user in users if user.identity]:
        cursor.execute(
            f"""
            SELECT issuer, subject, user_id
            FROM user_identity
            WHERE (issuer, subject) IN ({", ".join(["(%s, %s)"] * len(identities))})
            """,
            [text for identity in identities for text in identity],
        )
        owners = {(issuer, subject): owner for issuer, subject, owner in cursor.fetchall()}
        refused = {
            user.id
            for user in users
            if user.identity and owners.get(user.identity, user.id) != user.id
        }
    new = [user for user in users if user.id not in refused]
    if new:
        cursor.execute(
            f"""
            INSERT INTO user (id, nickname, created_at)
            VALUES {", ".join(["(%s, %s, %s)"] * len(new))}
            ON DUPLICATE KEY UPDATE id = user.id
            """,
            [v for user in new for v in (user.id, user.nickname, sql.from_us(user.created_us))],
        )
    if known := [(*user.identity, user.id) for user in new if user.identity]:
        cursor.execute(
            f"""
            INSERT INTO user_identity (issuer, subject, user_id)
            VALUES {", ".join(["(%s, %s, %s)"] * len(known))}
            ON DUPLICATE KEY UPDATE user_id = user_identity.user_id
            """,
            [value for row in known for value in row],
        )
    return refused
