"""Telling Redis what MySQL has of shops that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.infra import cache
from plaza.infra.cache import NEVER_STALE, STALE_WHILE_REBUILDING, CacheEntry
from plaza.infra.observability import record
from plaza.shops import mysql_shops, queries, redis_store
from plaza.shops.model import (
    EVERYTHING,
    MAX_SHOPS_PER_MESSAGE,
    REMOVED_VERSION,
    ShopChange,
    ShopJobStep,
    ShopPlace,
    ShopRefresh,
    StoredShop,
    shop_place_of,
)
from plaza.shops.queues import SHOPS

REPEAT_DELAY_S = 1


def refresh(shop_ids: Sequence[int]) -> None:
    """Tell Redis what MySQL has of these shops. Two statements and four round trips at most.

    Raises MysqlDown, RedisDown, QueueDown.
    """
    if not shop_ids:
        return
    stored = mysql_shops.read(shop_ids)
    cache.store_all(STALE_WHILE_REBUILDING, queries.entries_of(stored), create=False)
    missing = [shop_id for shop_id in shop_ids if shop_id not in stored]
    none = {redis_store.page_key(shop_id): CacheEntry(REMOVED_VERSION, None) for shop_id in missing}
    cache.store_all(STALE_WHILE_REBUILDING, none, create=True)
    project_shops(stored, missing)
    record("shops_refreshed", {"shops_refreshed": len(shop_ids)}, found=len(stored))


def project_changes(changed: Sequence[ShopChange], types: bool) -> None:
    """Tell Redis what changed in MySQL, whoever changed it: now, and again in a second.

    Versions that didn't move are moved, so that what was read before is older from now on. Safe to
    repeat. Raises MysqlDown, RedisDown, QueueDown.
    """
    mysql_shops.bump_versions(
        {c.shop_id: c.after for c in changed if c.after and c.before == c.after}
    )
    shop_ids = sorted({one.shop_id for one in changed})
    refresh(shop_ids)
    again = [
        shop_ids[i : i + MAX_SHOPS_PER_MESSAGE]
        for i in range(0, len(shop_ids), MAX_SHOPS_PER_MESSAGE)
    ]
    if types:
        refresh_types()
        again.append([])
    for part in again:
        SHOPS.send(ShopRefresh(part), delay_s=REPEAT_DELAY_S)


def refresh_types() -> None:
    """Tell Redis which types there are. Raises MysqlDown, RedisDown."""
    entry = queries.types_entry(mysql_shops.read_types())
    cache.store_all(NEVER_STALE, {redis_store.TYPES_KEY: entry}, create=False)


def request_full_refresh() -> None:
    """Have Redis told everything about shops: nobody knows what changed. Raises QueueDown."""
    SHOPS.send(ShopRefresh([]))
    SHOPS.send(ShopJobStep(EVERYTHING))


def project_shops(stored: Mapping[int, StoredShop], missing: Sequence[int] = ()) -> None:
    """Tell the filter and the places of these shops; ``missing`` were taken out of MySQL.

    One statement and two round trips. Raises MysqlDown, RedisDown, QueueDown.
    """
    if stored:
        redis_store.SHOP_IDS.add(sorted(stored))
    placed = [shop_place_of(one) for one in stored.values()]
    placed += [ShopPlace(shop_id, None, None) for shop_id in missing]
    # It is put where it is, and taken from wherever else it may have been.
    sets: dict[int | None, Sequence[ShopPlace]] = {None: placed}
    for shop_type in mysql_shops.read_types().types:
        sets[shop_type.id] = [
            one if _is_of(stored, one.shop_id, shop_type.id) else one._replace(place=None)
            for one in placed
        ]
    again = sorted(redis_store.put_places(sets))
    for start in range(0, len(again), MAX_SHOPS_PER_MESSAGE):
        # A row that was taken out may be back, and older than what was heard of it.
        part = ShopRefresh(again[start : start + MAX_SHOPS_PER_MESSAGE])
        SHOPS.send(part, delay_s=redis_store.REMOVED_TTL_S + 1)


def _is_of(stored: Mapping[int, StoredShop], shop_id: int, type_id: int) -> bool:
    return shop_id in stored and stored[shop_id].shop.type_id == type_id
