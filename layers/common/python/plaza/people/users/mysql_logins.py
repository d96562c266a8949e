"""What users sign in with, in MySQL: phones and identities, in tables of their own that no reader
of profiles uses."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.people.users.identities import Identity
from plaza.people.users.model import User


class Logins(NamedTuple):
    """The statements of a table: find the user of a login; insert a login of a user unless it has
    one."""

    find: str
    insert: str


_USER = "SELECT user.id, user.nickname, user.avatar"
# With INSERT IGNORE two transactions that wait for a third deadlock if it rolls back.
PHONES = Logins(
    f"""
    {_USER}
    FROM user_phone
    JOIN user ON user.id = user_phone.user_id
    WHERE user_phone.phone = %s
    """,
    """
    INSERT INTO user_phone (phone, user_id)
    VALUES (%s, %s)
    ON DUPLICATE KEY UPDATE user_id = user_phone.user_id
    """,
)
IDENTITIES = Logins(
    f"""
    {_USER}
    FROM user_identity
    JOIN user ON user.id = user_identity.user_id
    WHERE user_identity.issuer = %s
      AND user_identity.subject = %s
    """,
    """
    INSERT INTO user_identity (issuer, subject, user_id)
    VALUES (%s, %s, %s)
    ON DUPLICATE KEY UPDATE user_id = user_identity.user_id
    """,
)


def find(logins: Logins, login: tuple[str, ...]) -> User | None:
    """Return the user of a login, or None. One statement. Raises MysqlDown."""
    return next((User(*row) for row in mysql.fetch_all(logins.find, login)), None)


def find_identities(identities: Collection[Identity]) -> dict[Identity, int]:
    """Return identity -> user of those that are known, also of closed accounts. One statement, none
    without any. Raises MysqlDown."""
    if not identities:
        return {}
    listed = f"(issuer, subject) IN ({', '.join(['(%s, %s)'] * len(identities))})"
    texts = [text for identity in identities for text in identity]
    rows = mysql.fetch_all(
        f"""
        SELECT issuer, subject, user_id
        FROM closed_user
        WHERE {listed}
        UNION ALL
        SELECT issuer, subject, user_id
        FROM user_identity
        WHERE {listed}
        """,
        [*texts, *texts],
    )
    return {Identity(issuer, subject): user_id for issuer, subject, user_id in rows}


def find_or_insert(logins: Logins, login: tuple[str, ...], user_id: int, nickname: str) -> User:
    """Return the user of a login, created if there is none. One transaction. Raises MysqlDown."""

    def work(cursor: Cursor) -> User:
        if cursor.execute(logins.insert, (*login, user_id)):
            cursor.execute("INSERT INTO user (id, nickname) VALUES (%s, %s)", (user_id, nickname))
        cursor.execute(logins.find, login)
        [row] = cursor.fetchall()
        return User(*row)

    return mysql.run_in_transaction(work)


def link(user_id: int, phone: str) -> tuple[int | None, str | None]:
    """Store the phone of a user who has none, if no user has it; return (whose it is then, the
    phone of the user), (None, None) without the user. One transaction. Raises MysqlDown."""

    def work(cursor: Cursor) -> tuple[int | None, str | None]:
        cursor.execute("SELECT id FROM user WHERE id = %s FOR UPDATE", (user_id,))
        if not cursor.fetchall():
            return None, None
        cursor.execute(PHONES.insert, (phone, user_id))
        cursor.execute(
            "SELECT phone, user_id FROM user_phone WHERE phone = %s OR user_id = %s",
            (phone, user_id),
        )
        rows = cursor.fetchall()
        owners, phones = dict(rows), {owner: own for own, owner in rows}
        return owners.get(phone, user_id), phones.get(user_id)

    return mysql.run_in_transaction(work)


def delete_phone(user_id: int) -> bool:
    """Delete the phone of a user; return whether there was one. One statement. Raises MysqlDown."""
    return mysql.write("DELETE FROM user_phone WHERE user_id = %s", (user_id,)) > 0
