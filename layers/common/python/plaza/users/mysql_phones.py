"""Whose phone it is, in MySQL, apart from the profiles: nothing that shows people reads this."""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza.infra import mysql
from plaza.users.model import User

_BY_PHONE = """
    SELECT user.id, user.nickname, user.avatar
    FROM user_phone
    JOIN user ON user.id = user_phone.user_id
    WHERE user_phone.phone = %s
    """


def find(phone: str) -> User | None:
    """The user of ``phone``, None when nobody is. Raises MysqlDown."""
    rows = mysql.fetch_all(_BY_PHONE, (phone,))
    return User(*rows[0]) if rows else None


def find_or_insert(phone: str, user_id: int, nickname: str) -> User:
    """The user of ``phone``: a new one, unless somebody came first. Raises MysqlDown."""

    def work(cursor: Cursor) -> User:
        # Not INSERT IGNORE: two that wait for one that gives up would then be a deadlock.
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
