"""Users in MySQL, the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.people.users.model import Card
from plaza.people.users.zones import Zone

PROFILE_COLUMNS = ("nickname", "avatar", "time_zone")
"""What a user may change."""
_ZONE_COLUMNS = "time_zone, latest_day, excused_from, excused_until"
REMAINS = """
EXISTS (SELECT 1 FROM user WHERE id = {user_id})
OR EXISTS (SELECT 1 FROM user_identity WHERE user_id = {user_id})
OR EXISTS (SELECT 1 FROM user_phone WHERE user_id = {user_id})
"""
"""Whether an erased user has rows again."""


def read_cards(user_ids: Iterable[int]) -> dict[int, tuple[Card, int]]:
    """Return id -> (card, version) of existing users. One statement. Raises MysqlDown."""
    ids = list(user_ids)
    return _parse_cards(mysql.fetch_all(_select_cards(ids))) if ids else {}


def read_zones(user_ids: Iterable[int]) -> dict[int, tuple[Zone, int]]:
    """Return id -> (time zone, version) of existing users. One statement. Raises MysqlDown."""
    numbers = sql.render_ids(user_ids)
    if not numbers:
        return {}
    rows = mysql.fetch_all(f"SELECT id, version, {_ZONE_COLUMNS} FROM user WHERE id IN ({numbers})")
    return {user_id: (_parse_zone(*columns), version) for user_id, version, *columns in rows}


def move_to_zone(cursor: Cursor, user_id: int, name: str, now_s: float) -> None:
    """Store the days that a change of the time zone to ``name`` leaves. Two statements."""
    cursor.execute(f"SELECT {_ZONE_COLUMNS} FROM user WHERE id = %s FOR UPDATE", (user_id,))
    for columns in cursor.fetchall():
        zone = _parse_zone(*columns).move_to(name, now_s)
        cursor.execute(
            """
            UPDATE user
            SET latest_day = %s, excused_from = %s, excused_until = %s
            WHERE id = %s
            """,
            (zone.latest_day, *(zone.excused or (None, None)), user_id),
        )


def _parse_zone(name: str, latest_day: date | None, first: date | None, last: date | None) -> Zone:
    return Zone(name, latest_day, (first, last) if first and last else None)


def lock_profile(cursor: Cursor, user_id: int) -> dict[str, str | None]:
    """Return the columns that the user may change, locked until the commit; none without the user.
    One statement."""
    columns = ", ".join(PROFILE_COLUMNS)
    cursor.execute(f"SELECT {columns} FROM user WHERE id = %s FOR UPDATE", (user_id,))
    return dict(zip(PROFILE_COLUMNS, cursor.fetchone() or (), strict=False))


def update_columns(
    cursor: Cursor, user_id: int, changes: Mapping[str, str | None]
) -> tuple[Card, int] | None:
    """Set columns, whose names are not escaped; return the new (card, version), None if missing.

    Two statements.
    """
    columns = ", ".join(f"{column} = %s" for column in changes)
    args = (*changes.values(), user_id)
    cursor.execute(f"UPDATE user SET {columns}, version = user.version + 1 WHERE id = %s", args)
    cursor.execute(_select_cards([user_id]))
    return _parse_cards(cursor.fetchall()).get(user_id)


def insert(user_id: int, nickname: str, role: str) -> None:
    """Store a user without a phone. One statement. Raises MysqlDown."""
    mysql.write(
        """
        INSERT INTO user (id, nickname, role)
        VALUES (%s, %s, %s)
        ON DUPLICATE KEY UPDATE id = user.id
        """,
        (user_id, nickname, role),
    )


def read_role(user_id: int) -> str | None:
    """Return the role of a user, None without the user. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all("SELECT role FROM user WHERE id = %s", (user_id,))
    return rows[0][0] if rows else None


def set_role(user_id: int, role: str) -> str | None:
    """Set the role of a user; return the one before, None without the user. One transaction of two
    statements. Raises MysqlDown."""

    def work(cursor: Cursor) -> str | None:
        cursor.execute("SELECT role FROM user WHERE id = %s FOR UPDATE", (user_id,))
        rows = cursor.fetchall()
        cursor.execute("UPDATE user SET role = %s WHERE id = %s", (role, user_id))
        return str(rows[0][0]) if rows else None

    return mysql.run_in_transaction(work)


def delete(user_id: int) -> int:
    """Delete a user, open or closed, the phone and the identity; return the number of rows. One
    transaction of four statements. Raises MysqlDown."""

    def work(cursor: Cursor) -> int:
        closed = cursor.execute("DELETE FROM closed_user WHERE user_id = %s", (user_id,))
        return closed + delete_rows(cursor, user_id)

    return mysql.run_in_transaction(work)


def delete_rows(cursor: Cursor, user_id: int) -> int:
    """Delete a user, the phone and the identity; return the number of rows. The user is first: a
    phone that is linked at the same time, under the user's lock, is deleted too. Three
    statements."""
    users = cursor.execute("DELETE FROM user WHERE id = %s", (user_id,))
    phones = cursor.execute("DELETE FROM user_phone WHERE user_id = %s", (user_id,))
    identities = cursor.execute("DELETE FROM user_identity WHERE user_id = %s", (user_id,))
    return phones + identities + users


def _select_cards(user_ids: Iterable[int]) -> str:
    numbers = sql.render_ids(user_ids)
    return f"SELECT id, nickname, avatar, version FROM user WHERE id IN ({numbers})"


def _parse_cards(rows: Iterable[tuple[int, str, str | None, int]]) -> dict[int, tuple[Card, int]]:
    return {
        user_id: (Card(user_id, nickname, avatar), version)
        for user_id, nickname, avatar, version in rows
    }
