"""Members of shops in MySQL, the only place that has them."""

from __future__ import annotations

from plaza.commerce.shops.model import Member, Role
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor


def read_role(shop_id: int, user_id: int) -> Role | None:
    """Return the role of a user in a shop, None without one. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        "SELECT role FROM shop_member WHERE shop_id = %s AND user_id = %s", (shop_id, user_id)
    )
    return rows[0][0] if rows else None


def read_all(shop_id: int) -> list[Member]:
    """Return the members of a shop, owners first. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT user_id, role, created_at
        FROM shop_member
        WHERE shop_id = %s
        ORDER BY role, created_at, user_id
        """,
        (shop_id,),
    )
    return [Member(user_id, role, sql.to_us(at)) for user_id, role, at in rows]


def read_of_user(user_id: int, after_id: int, limit: int) -> list[tuple[int, Role]]:
    """Return a page of (shop, role) of a user, by shop, without deleted shops. One statement.
    Raises MysqlDown."""
    return [
        (shop_id, role)
        for shop_id, role in mysql.fetch_all(
            f"""
            SELECT m.shop_id, m.role
            FROM shop_member AS m FORCE INDEX (by_user)
            JOIN shop ON shop.id = m.shop_id
            WHERE m.user_id = %s
              AND m.shop_id > %s
              AND shop.deleted_at IS NULL
            ORDER BY m.shop_id LIMIT {limit:d}
            """,
            (user_id, after_id),
        )
    ]


def lock(cursor: Cursor, shop_id: int) -> dict[int, Role]:
    """Return user -> role of the members of a shop, locked until the commit. One statement. The
    caller holds the lock of the shop."""
    cursor.execute(
        "SELECT user_id, role FROM shop_member WHERE shop_id = %s FOR UPDATE", (shop_id,)
    )
    return dict(cursor.fetchall())


def has_user(cursor: Cursor, user_id: int) -> bool:
    """Return whether a user exists, with a shared lock on it until the commit. One statement."""
    return cursor.execute("SELECT 1 FROM user WHERE id = %s LOCK IN SHARE MODE", (user_id,)) == 1


def store(cursor: Cursor, shop_id: int, user_id: int, role: Role, appointer_id: int) -> Member:
    """Store a member, or the other role of one, and return it. Two statements."""
    cursor.execute(
        """
        INSERT INTO shop_member (shop_id, user_id, role, appointed_by, created_at)
        VALUES (%s, %s, %s, %s, UTC_TIMESTAMP(6))
        ON DUPLICATE KEY UPDATE appointed_by = IF(role = VALUES(role), appointed_by,
            VALUES(appointed_by)), role = VALUES(role)
        """,
        (shop_id, user_id, role, appointer_id),
    )
    cursor.execute(
        "SELECT user_id, role, created_at FROM shop_member WHERE shop_id = %s AND user_id = %s",
        (shop_id, user_id),
    )
    [(_, stored_role, at)] = cursor.fetchall()
    return Member(user_id, stored_role, sql.to_us(at))


def delete(cursor: Cursor, shop_id: int, user_id: int) -> None:
    """Delete a member. One statement."""
    cursor.execute(
        "DELETE FROM shop_member WHERE shop_id = %s AND user_id = %s", (shop_id, user_id)
    )


def delete_of_user(user_id: int) -> int:
    """Remove a user from all shops; return from how many. One statement. Raises MysqlDown."""
    return mysql.write("DELETE FROM shop_member WHERE user_id = %s", (user_id,))
