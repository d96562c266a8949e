"""Shops as reviews need them."""

from __future__ import annotations

from plaza.commerce.shops import mysql_shops, queries
from plaza.core.targets import Existence
from plaza.infra.mysql.mysql import Cursor


def require(shop_id: int) -> None:
    """Raise ShopMissing or ShopDeleted if the shop does not exist; otherwise as
    ``queries.read``."""
    queries.read(shop_id)


def lock(cursor: Cursor, shop_id: int) -> Existence:
    """Return whether the shop exists, with a shared lock on it until the commit. One statement."""
    is_deleted = mysql_shops.lock_shared(cursor, shop_id)
    if is_deleted is None:
        return Existence.MISSING
    return Existence.DELETED if is_deleted else Existence.LIVE
