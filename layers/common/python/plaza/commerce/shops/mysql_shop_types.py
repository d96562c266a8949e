"""Shop types in MySQL. Each function executes one statement."""

from __future__ import annotations

from plaza.commerce.shops.model import ShopType, ShopTypeDraft
from plaza.infra.mysql.mysql import Cursor


def insert(cursor: Cursor, type_id: int, draft: ShopTypeDraft) -> ShopType:
    cursor.execute(
        "INSERT INTO shop_type (id, name, icon, sort) VALUES (%s, %s, %s, %s)",
        (type_id, draft.name, draft.icon, draft.sort),
    )
    return ShopType(type_id, draft.name, draft.icon)


def replace(cursor: Cursor, type_id: int, draft: ShopTypeDraft) -> ShopType:
    cursor.execute(
        "UPDATE shop_type SET name = %s, icon = %s, sort = %s WHERE id = %s",
        (draft.name, draft.icon, draft.sort, type_id),
    )
    return ShopType(type_id, draft.name, draft.icon)


def delete(cursor: Cursor, type_id: int) -> None:
    cursor.execute("DELETE FROM shop_type WHERE id = %s", (type_id,))


def lock(cursor: Cursor, type_id: int) -> bool:
    """Return whether the type exists, and lock it until the commit."""
    return cursor.execute("SELECT 1 FROM shop_type WHERE id = %s FOR UPDATE", (type_id,)) == 1


def is_used(cursor: Cursor, type_id: int) -> bool:
    """Return whether a shop that is not deleted has the type."""
    return (
        cursor.execute(
            "SELECT 1 FROM shop WHERE type_id = %s AND deleted_at IS NULL LIMIT 1 FOR UPDATE",
            (type_id,),
        )
        == 1
    )
