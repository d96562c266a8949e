"""Writing shops: announced, done in one transaction, then told to Redis, twice.

Redis lets go of the page right after the commit, and again in a second, because a reader with old
data may have refilled it. Who dies between the commit and the telling has announced the write
before: its refresh comes.
"""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza.infra import cache, ids, mysql
from plaza.infra.errors import Unavailable
from plaza.infra.observability import cause, record
from plaza.infra.queues import QueueDown
from plaza.shops import mysql_shops, redis_shops, refreshing
from plaza.shops.queues import SHOPS
from plaza.shops.shops import (
    Refresh,
    Shop,
    ShopDraft,
    ShopGone,
    ShopMissing,
    Stored,
    TypeUnknown,
)

ANNOUNCED_S = 15  # longer than a request may take


def create(draft: ShopDraft) -> Shop:
    """A new shop. Raises TypeUnknown, MysqlDown, RedisDown."""
    shop_id = ids.new_id()
    redis_shops.SHOP_IDS.add([shop_id])  # what MySQL has, the filter has: so before
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> Stored:
        _insist_on_type(cursor, draft)
        return mysql_shops.insert(cursor, shop_id, draft)

    return _tell(mysql.atomically(work), announced)


def replace(shop_id: int, draft: ShopDraft) -> Shop:
    """A shop, of which everything is said anew.

    Raises ShopMissing, ShopGone, TypeUnknown, MysqlDown.
    """
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> Stored:
        _insist_on_shop(cursor, shop_id)
        _insist_on_type(cursor, draft)
        return mysql_shops.replace(cursor, shop_id, draft)

    return _tell(mysql.atomically(work), announced)


def delete(shop_id: int) -> None:
    """Delete a shop. Raises ShopMissing; ShopGone when it was deleted before; MysqlDown."""
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> Stored:
        _insist_on_shop(cursor, shop_id)
        return mysql_shops.mark_deleted(cursor, shop_id)

    _tell(mysql.atomically(work), announced)


def _announce(shop_id: int) -> bool:
    """Have it refreshed in a moment; False when the queue is away, which is no reason to refuse."""
    try:
        SHOPS.send(Refresh([shop_id]), delay_s=ANNOUNCED_S)
    except QueueDown as error:
        record("write_unannounced", {"unannounced": 1}, **cause(error))
        return False
    return True


def _insist_on_shop(cursor: Cursor, shop_id: int) -> None:
    stored = mysql_shops.hold(cursor, shop_id)
    if stored is None:
        raise ShopMissing(f"There is no shop {shop_id}")
    if stored.deleted:
        raise ShopGone(f"The shop {shop_id} was deleted")


def _insist_on_type(cursor: Cursor, draft: ShopDraft) -> None:
    if draft.type_id is not None and not mysql_shops.has_type(cursor, draft.type_id):
        raise TypeUnknown("body.type_id", f"there is no type {draft.type_id}")


def _tell(stored: Stored, announced: bool) -> Shop:
    """Tell Redis. It is in MySQL already, so there is no reason left to refuse."""
    versions = {redis_shops.page_key(stored.shop.id): stored.ver}
    try:
        cache.drop_all(versions)
        refreshing.tell_of({stored.shop.id: stored})
    except Unavailable as error:
        record("telling_postponed", {"tellings_postponed": 1}, announced=announced, **cause(error))
    cache.drop_soon(versions)
    return stored.shop
