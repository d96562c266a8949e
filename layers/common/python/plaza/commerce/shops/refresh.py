"""Project changed shops and types from MySQL to Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.commerce.shops import mysql_shops, queries, redis_store
from plaza.commerce.shops.model import (
    EVERYTHING,
    MAX_SHOPS_PER_MESSAGE,
    REMOVED_VERSION,
    SHOP,
    TYPES,
    Shop,
    ShopChange,
    ShopJobStep,
    ShopPlace,
    ShopRefresh,
    StoredShop,
    shop_place_of,
)
from plaza.commerce.shops.queues import SHOPS
from plaza.infra.derived import cache
from plaza.infra.derived.cache import NEVER_STALE, STALE_WHILE_REBUILDING, CacheEntry
from plaza.infra.runtime.codec import Deleted
from plaza.infra.runtime.observability import record

REPEAT_DELAY_S = 1


def refresh(shop_ids: Sequence[int]) -> None:
    """Project shops. At most two statements and five round trips. Raises MysqlDown, RedisDown,
    QueueDown."""
    if not shop_ids:
        return
    stored = mysql_shops.read(shop_ids)
    cache.store_all(STALE_WHILE_REBUILDING, queries.entries_of(stored), SHOP, create=False)
    missing = [shop_id for shop_id in shop_ids if shop_id not in stored]
    removed: CacheEntry[Shop | Deleted] = CacheEntry(REMOVED_VERSION, None)
    absent = {redis_store.page_key(shop_id): removed for shop_id in missing}
    cache.store_all(STALE_WHILE_REBUILDING, absent, SHOP, create=True)
    project_shops(stored, missing)
    record("shops_refreshed", {"shops_refreshed": len(shop_ids)}, found=len(stored))


def project_changes(changes: Sequence[ShopChange], types_changed: bool) -> None:
    """Project changes that bypassed the API, now and again after 1 s. Safe to repeat.

    Versions that such a change did not raise are raised first, so that reads from before the change
    are refused. Raises MysqlDown, RedisDown, QueueDown.
    """
    mysql_shops.bump_versions(
        {c.shop_id: c.after for c in changes if c.after and c.before == c.after}
    )
    shop_ids = sorted({change.shop_id for change in changes})
    refresh(shop_ids)
    repeats = [
        shop_ids[i : i + MAX_SHOPS_PER_MESSAGE]
        for i in range(0, len(shop_ids), MAX_SHOPS_PER_MESSAGE)
    ]
    if types_changed:
        refresh_types()
        repeats.append([])
    for part in repeats:
        SHOPS.send(ShopRefresh(part), delay_s=REPEAT_DELAY_S)


def refresh_types() -> None:
    """Project the shop types. One statement, one round trip. Raises MysqlDown, RedisDown."""
    entry = queries.types_entry(mysql_shops.read_types())
    cache.store_all(NEVER_STALE, {redis_store.TYPES_KEY: entry}, TYPES, create=False)


def request_full_refresh() -> None:
    """Queue the refresh of all shops and types. Raises QueueDown."""
    SHOPS.send(ShopRefresh([]))
    SHOPS.send(ShopJobStep(EVERYTHING))


def project_shops(stored: Mapping[int, StoredShop], missing: Sequence[int] = ()) -> None:
    """Add shops to the filter and their places to the sets; ``missing`` were removed from MySQL.
    One statement and three round trips. Raises MysqlDown, RedisDown, QueueDown."""
    if stored:
        redis_store.SHOP_IDS.add(sorted(stored))
    placed = [shop_place_of(shop) for shop in stored.values()]
    placed += [ShopPlace(shop_id, None, None) for shop_id in missing]
    recheck = sorted(redis_store.put_places(placed, read_type_ids()))
    for start in range(0, len(recheck), MAX_SHOPS_PER_MESSAGE):
        # A removed row may have been restored with a version that the sets refuse until then.
        part = ShopRefresh(recheck[start : start + MAX_SHOPS_PER_MESSAGE])
        SHOPS.send(part, delay_s=redis_store.REMOVED_TTL_S + 1)


def read_type_ids() -> list[int]:
    """Return the ids of all types. One statement. Raises MysqlDown."""
    return [shop_type.id for shop_type in mysql_shops.read_types().types]
