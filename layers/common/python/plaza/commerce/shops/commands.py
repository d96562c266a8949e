"""Create, replace and delete shops: announce, write in one transaction, project to Redis.

The cached page is dropped after the commit and again after 1 s, because a reader with an older row
may cache it in between. If the process ends before that, the announced refresh does it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

from plaza.commerce.shops import mysql_shops, redis_store, refresh
from plaza.commerce.shops.model import (
    Shop,
    ShopDeleted,
    ShopDraft,
    ShopMissing,
    ShopRefresh,
    StoredShop,
    TypeUnknown,
)
from plaza.commerce.shops.queues import SHOPS
from plaza.infra.derived import cache, ids
from plaza.infra.http.requests import check_tag, tag_fields
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.settings import settings


def create(draft: ShopDraft) -> Shop:
    """Store a new shop. Raises TypeUnknown, MysqlDown, RedisDown."""
    shop_id = ids.new_id()
    redis_store.SHOP_IDS.add([shop_id])  # first: the filter must have every id that MySQL has
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> StoredShop:
        _require_type(cursor, draft)
        return mysql_shops.insert(cursor, shop_id, draft)

    return _project(mysql.run_in_transaction(work), announced)


def tag_of(shop: ShopDraft) -> str:
    """Return the ETag of a shop: of the fields that its owner may change."""
    return tag_fields(*(getattr(shop, field.name) for field in fields(ShopDraft)))


def replace(shop_id: int, draft: ShopDraft, tags: Collection[str] | None = None) -> Shop:
    """Replace all fields of a shop. ``tags``: of the versions that may be replaced; without them
    the last of concurrent changes wins. Raises ShopMissing, ShopDeleted, TypeUnknown,
    ChangedMeanwhile, MysqlDown."""
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> StoredShop:
        stored = require_live_shop(cursor, shop_id)
        check_tag(tags, tag_of(stored), tag_of(draft), "shop")
        _require_type(cursor, draft)
        return mysql_shops.replace(cursor, shop_id, draft)

    return _project(mysql.run_in_transaction(work), announced)


def delete(shop_id: int) -> None:
    """Delete a shop. Raises ShopMissing; ShopDeleted if it is already deleted; MysqlDown."""
    announced = _announce(shop_id)

    def work(cursor: Cursor) -> StoredShop:
        require_live_shop(cursor, shop_id)
        return mysql_shops.mark_deleted(cursor, shop_id)

    _project(mysql.run_in_transaction(work), announced)


def _announce(shop_id: int) -> bool:
    """Queue a delayed refresh; return False if SQS refuses, which does not fail the write."""
    return SHOPS.try_send(ShopRefresh([shop_id]), delay_s=settings().announce_delay_s)


def lock_shop(cursor: Cursor, shop_id: int) -> StoredShop:
    """Return a shop, locked until the commit. One statement. Raises ShopMissing."""
    stored = mysql_shops.lock(cursor, shop_id)
    if stored is None:
        raise ShopMissing(f"Shop {shop_id} does not exist.")
    return stored


def require_live_shop(cursor: Cursor, shop_id: int) -> Shop:
    """Return a shop, locked until the commit. One statement. Raises ShopMissing, ShopDeleted."""
    stored = lock_shop(cursor, shop_id)
    if stored.deleted:
        raise ShopDeleted(f"Shop {shop_id} was deleted.")
    return stored.shop


def _require_type(cursor: Cursor, draft: ShopDraft) -> None:
    if draft.type_id is not None and not mysql_shops.has_type(cursor, draft.type_id):
        path = "body.type_id"
        detail = f"Shop type {draft.type_id} does not exist."
        raise TypeUnknown(path, detail, code="unknown-id", path=path)


def _project(stored: StoredShop, announced: bool) -> Shop:
    """Project a committed shop. Failures are only recorded."""
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
