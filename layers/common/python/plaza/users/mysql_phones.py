"""Phones in MySQL, in a table of their own that no reader of profiles uses."""

from __future__ import annotations

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.users.model import User

_BY_PHONE = """
    SELECT user.id, user.nickname, user.avatar
    FROM user_phone
    JOIN user ON user.id = user_phone.user_id
    WHERE user_phone.phone = %s
    """


def find(phone: str) -> User | None:
    """Return the user of ``phone``, or None. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(_BY_PHONE, (phone,))
    return User(*rows[0]) if rows else None


def find_or_insert(phone: str, user_id: int, nickname: str) -> User:
    """Return the user of ``phone``, created if there is none. One transaction. Raises MysqlDown."""

    def work(cursor: Cursor) -> User:
        # With INSERT IGNORE two transactions that wait for a third deadlock if it rolls back.
        is_first = cursor.execute(
            """
            INSERT INTO user_phone (phone, user_id)
            VALUES (%s, %s)
            ON DUPLICATE KEY UPDATE user_id = user_phone.user_id
            """,
            (phone, user_id),
        )
        if is_first:
            cursor.execute("INSERT INTO user (id, nickname) VALUES (%s, %s)", (user_id, nickname))
        cursor.execute(_BY_PHONE, (phone,))
        return User(*cursor.fetchall()[0])

    return mysql.run_in_transaction(work)
