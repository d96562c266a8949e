"""Closed accounts in MySQL: the rows of a user in a table that no reader of users knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.people.users import mysql_users
from plaza.people.users.model import User
from plaza.people.users.mysql_logins import IDENTITIES, PHONES

_PROFILE = (
    "nickname, avatar, role, time_zone, latest_day, excused_from, excused_until, version,"
    " created_at"
)
MIN_LEFT_S = 120
"""How long before its erasure an account opens for the last time: longer than a transaction, so
that no pass erases an account that opens at the same moment."""

By = Literal["id", "phone", "identity"]
_FOUND_BY = {
    "id": "user_id = %s",
    "phone": "phone = %s",
    "identity": "issuer = %s AND subject = %s",
}


class ClosedUser(NamedTuple):
    """A closed account whose texts are not all hidden, or a reopened one whose texts are not all
    shown. ``closed_at`` is in UTC."""

    user_id: int
    closed_at: datetime
    is_reopened: bool


def close(cursor: Cursor, user_id: int) -> int:
    """Move the rows of a user aside; return how many there were. Five statements. An account that
    closes again before its texts are shown keeps ``closed_at``."""
    cursor.execute("SELECT id FROM user WHERE id = %s FOR UPDATE", (user_id,))
    cursor.execute(
        f"""
        INSERT INTO closed_user (user_id, {_PROFILE}, phone, issuer, subject, closed_at)
        SELECT user.id, nickname, avatar, role, time_zone, latest_day, excused_from,
            excused_until, version, user.created_at, phone, issuer, subject, UTC_TIMESTAMP(6)
        FROM user
        LEFT JOIN user_phone ON user_phone.user_id = user.id
        LEFT JOIN user_identity ON user_identity.user_id = user.id
        WHERE user.id = %s
        ON DUPLICATE KEY UPDATE nickname = VALUES(nickname), avatar = VALUES(avatar),
            role = VALUES(role), time_zone = VALUES(time_zone), latest_day = VALUES(latest_day),
            excused_from = VALUES(excused_from), excused_until = VALUES(excused_until),
            version = VALUES(version), phone = VALUES(phone), issuer = VALUES(issuer),
            subject = VALUES(subject), reopened_at = NULL, settled_at = NULL
        """,
        (user_id,),
    )
    return mysql_users.delete_rows(cursor, user_id)


def reopen(by: By, login: Sequence[str | int]) -> User | None:
    """Return the user of a login whose account was closed last, open again; None if there is none
    that may open. One transaction of up to six statements. Raises MysqlDown."""

    def work(cursor: Cursor) -> User | None:
        cursor.execute(
            f"""
            SELECT user_id, nickname, avatar, phone, issuer, subject
            FROM closed_user
            WHERE {_FOUND_BY[by]}
              AND reopened_at IS NULL
            ORDER BY closed_at DESC
            LIMIT 1
            FOR UPDATE
            """,
            login,
        )
        rows = cursor.fetchall()
        if not rows:
            return None
        [(user_id, nickname, avatar, phone, issuer, subject)] = rows
        cancelled = cursor.execute(
            """
            DELETE FROM erasure
            WHERE user_id = %s
              AND requested_at > UTC_TIMESTAMP(6) + INTERVAL %s SECOND
            """,
            (user_id, MIN_LEFT_S),
        )
        if not cancelled:
            return None
        cursor.execute(
            f"""
            INSERT INTO user (id, {_PROFILE})
            SELECT user_id, {_PROFILE}
            FROM closed_user
            WHERE user_id = %s
            """,
            (user_id,),
        )
        if phone is not None:  # another user may have linked it since
            cursor.execute(PHONES.insert, (phone, user_id))
        if issuer is not None:
            cursor.execute(IDENTITIES.insert, (issuer, subject, user_id))
        cursor.execute(
            """
            UPDATE closed_user
            SET reopened_at = UTC_TIMESTAMP(6), settled_at = NULL, phone = NULL, issuer = NULL,
                subject = NULL
            WHERE user_id = %s
            """,
            (user_id,),
        )
        return User(user_id, nickname, avatar, is_reopened=True)

    return mysql.run_in_transaction(work)


def find_unsettled(limit: int) -> list[ClosedUser]:
    """Return up to ``limit`` accounts whose texts are to be hidden or shown. One statement. Raises
    MysqlDown."""
    return [
        ClosedUser(*row)
        for row in mysql.fetch_all(
            """
            SELECT user_id, closed_at, reopened_at IS NOT NULL
            FROM closed_user FORCE INDEX (by_state)
            WHERE settled_at IS NULL
            ORDER BY user_id
            LIMIT %s
            """,
            (limit,),
        )
    ]


def settle(closed: ClosedUser, min_age_s: int) -> None:
    """Record that nothing is left to hide, if the account closed ``min_age_s`` ago, or to show,
    unless the account was closed or reopened since. One statement. Raises MysqlDown."""
    if closed.is_reopened:
        mysql.write(
            "DELETE FROM closed_user WHERE user_id = %s AND reopened_at IS NOT NULL",
            (closed.user_id,),
        )
        return
    mysql.write(
        """
        UPDATE closed_user
        SET settled_at = UTC_TIMESTAMP(6)
        WHERE user_id = %s
          AND reopened_at IS NULL
          AND closed_at <= UTC_TIMESTAMP(6) - INTERVAL %s SECOND
        """,
        (closed.user_id, min_age_s),
    )
