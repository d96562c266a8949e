"""Imported users in MySQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from plaza.infra.mysql import sql
from plaza.infra.mysql.mysql import Cursor
from plaza.people.users.identities import Identity


class ImportedUser(NamedTuple):
    """A user of another system, None or with an ``identity``; ``created_us``: microseconds since
    1970."""

    id: int
    nickname: str
    created_us: int
    identity: Identity | None = None


def insert(cursor: Cursor, users: Sequence[ImportedUser]) -> dict[int, str]:
    """Insert users and identities that do not exist; return id -> why a user was left out: it was
    erased, its identity is another user's, or it has another one. Four statements at most."""
    ids = sql.render_ids(user.id for user in users)
    cursor.execute(f"SELECT user_id FROM erasure WHERE user_id IN ({ids})")
    refused = {user_id: "it was erased" for (user_id,) in cursor.fetchall()}
    refused |= _insert_identities(
        cursor, {u.id: u.identity for u in users if u.identity and u.id not in refused}
    )
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
    return refused


def _insert_identities(cursor: Cursor, identities: Mapping[int, Identity]) -> dict[int, str]:
    """Insert the identities of users; return id -> why one is not stored. Two statements."""
    if not identities:
        return {}
    pairs = ", ".join(["(%s, %s)"] * len(identities))
    values = [text for identity in identities.values() for text in identity]
    cursor.execute(
        f"""
        INSERT INTO user_identity (issuer, subject, user_id)
        VALUES {", ".join(["(%s, %s, %s)"] * len(identities))}
        ON DUPLICATE KEY UPDATE user_id = user_identity.user_id
        """,
        [value for user_id, identity in identities.items() for value in (*identity, user_id)],
    )
    cursor.execute(
        f"""
        SELECT issuer, subject, user_id
        FROM user_identity
        WHERE (issuer, subject) IN ({pairs})
        LOCK IN SHARE MODE
        """,
        values,
    )
    owners = {Identity(issuer, subject): owner for issuer, subject, owner in cursor.fetchall()}
    return {
        user_id: "its identity belongs to another user"
        if identity in owners
        else "it has another identity"
        for user_id, identity in identities.items()
        if owners.get(identity) != user_id
    }
