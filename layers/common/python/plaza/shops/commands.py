"""Writing shops: announced, done in one transaction, then told to Redis, twice.

Redis lets go of the page right after the commit, and again in a second, because a reader with old
data may have refilled it. Who dies between the commit and the telling has announced the write
before: its refresh comes.
"""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza.infra import cache, ids, mysql
from plaza.infra.errors import Unavailable
from plaza.infra.observability import error_fields, record
from plaza.infra.queues import QueueDown
from plaza.shops import mysql_shops, redis_store, refresh
from plaza.shops.model import (
    Shop,
    ShopDeleted,
    ShopDraft,
    ShopMissing,
    ShopRefresh,
    StoredShop,
    TypeUnknown,
)
from plaza.shops.queues import SHOPS

ANNOUNCE_DELAY_S = 15  # longer than a request may take


def create(draft: ShopDraft) -> Shop:
    """A new shop. Raises TypeUnknown, MysqlDown, RedisDown."""
    shop_id = ids.new_id()
    redis_store.SHOP_IDS.add([shop_id])  # what MySQL has, the filter has: so before
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> StoredShop:
        _require_type(cursor, draft)
        return mysql_shops.insert(cursor, shop_id, draft)

    return _project(mysql.run_in_transaction(work), announced)


def replace(shop_id: int, draft: ShopDraft) -> Shop:
    """A shop, of which everything is said anew.

    Raises ShopMissing, ShopDeleted, TypeUnknown, MysqlDown.
    """
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> StoredShop:
        _require_live_shop(cursor, shop_id)
        _require_type(cursor, draft)
        return mysql_shops.replace(cursor, shop_id, draft)

    return _project(mysql.run_in_transaction(work), announced)


def delete(shop_id: int) -> None:
    """Delete a shop. Raises ShopMissing; ShopDeleted when it was deleted before; MysqlDown."""
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> StoredShop:
        _require_live_shop(cursor, shop_id)
        return mysql_shops.mark_deleted(cursor, shop_id)

    _project(mysql.run_in_transaction(work), announced)


def _announce(shop_id: int) -> bool:
    """Have it refreshed in a moment; False when the queue is away, which is no reason to refuse."""
    try:
        SHOPS.send(ShopRefresh([shop_id]), delay_s=ANNOUNCE_DELAY_S)
    except QueueDown as error:
        record("write_not_announced", {"writes_not_announced": 1}, **error_fields(error))
        return False
    return True


def _require_live_shop(cursor: Cursor, shop_id: int) -> None:
    stored = mysql_shops.lock(cursor, shop_id)
    if stored is None:
        raise ShopMissing(f"There is no shop {shop_id}")
    if stored.deleted:
        raise ShopDeleted(f"The shop {shop_id} was deleted")


def _require_type(cursor: Cursor, draft: ShopDraft) -> None:
    if draft.type_id is not None and not mysql_shops.has_type(cursor, draft.type_id):
        raise TypeUnknown("body.type_id", f"there is no type {draft.type_id}")


def _project(stored: StoredShop, announced: bool) -> Shop:
    """Tell Redis. It is in MySQL already, so there is no reason left to refuse."""
    versions = {redis_store.page_key(stored.shop.id): stored.version}
    try:
        cache.drop_all(versions)
        refresh.project_shops({stored.shop.id: stored})
    except Unavailable as error:
        record(
            "projection_delayed",
            {"projections_delayed": 1},
            announced=announced,
            **error_fields(error),
        )
    cache.schedule_drop(versions)
    return stored.shop
