"""Reading shops: one, several, their types. From Redis as far as it has them, else from MySQL.

A shop that is asked for by its id costs one round trip. One that Redis doesn't have is asked of the
Bloom filter first: what isn't in it costs MySQL nothing. Of those that may be there, one reader
asks MySQL while the others wait.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from plaza.infra import cache
from plaza.infra.cache import (
    NEVER_STALE,
    STALE_WHILE_REBUILDING,
    CachedValue,
    CacheEntry,
    StillLoading,
)
from plaza.infra.observability import error_fields, record
from plaza.infra.process import LocalCache
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.shops import mysql_shops, redis_store
from plaza.shops.model import (
    FILTER,
    MAX_SHOPS_PER_MESSAGE,
    Shop,
    ShopDeleted,
    ShopJobStep,
    ShopMissing,
    ShopRefresh,
    ShopType,
    StoredShop,
    TypeMissing,
    decode_shop,
)
from plaza.shops.mysql_shops import ShopTypes
from plaza.shops.queues import SHOPS

# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)
_types: LocalCache[int, bool] = LocalCache(max_entries=1_000, ttl_s=30)


def read(shop_id: int) -> Shop:
    """A shop.

    Raises ShopMissing, ShopDeleted, MysqlDown; RedisDown when too many ask MySQL instead.
    """
    try:
        held = _find(shop_id)
    except (RedisDown, StillLoading) as error:
        take_fallback_token(error)
        held = CachedValue(*_load(shop_id), stale=False)
    if held.text is None:
        raise _missing(shop_id)
    if (shop := decode_shop(held.text)) is None:
        raise ShopDeleted(f"The shop {shop_id} was deleted")
    return shop


def read_many(shop_ids: Sequence[int]) -> dict[int, Shop]:
    """Those of ``shop_ids`` that are there. A round trip when all is warm, else one more and one
    statement. Raises MysqlDown."""
    keys = {shop_id: redis_store.page_key(shop_id) for shop_id in shop_ids}
    held: dict[int, CachedValue] = {}
    with suppress(RedisDown):
        found = cache.read_all(list(keys.values()))
        held = {i: one for i, one in zip(keys, found, strict=True) if one is not None}
        _request_refresh([shop_id for shop_id, one in held.items() if one.stale])
    shops = {i: decode_shop(one.text) for i, one in held.items() if one.text is not None}
    if missing := [shop_id for shop_id in keys if shop_id not in held]:
        stored = mysql_shops.read(missing)
        with suppress(RedisDown):
            cache.store_all(STALE_WHILE_REBUILDING, entries_of(stored), create=True)
        shops |= {i: None if one.deleted else one.shop for i, one in stored.items()}
    return {shop_id: shop for shop_id, shop in shops.items() if shop is not None}


def read_types() -> list[ShopType]:
    """The types of shops in their order. Raises MysqlDown, RedisDown as ``read``."""
    try:
        [held] = cache.read_all([redis_store.TYPES_KEY])
        if held is None:
            held = cache.load_single_flight(NEVER_STALE, redis_store.TYPES_KEY, _load_types)
    except (RedisDown, StillLoading) as error:
        take_fallback_token(error)
        held = CachedValue(*_load_types(), stale=False)
    return [ShopType(*fields) for fields in json.loads(held.text or "[]")]


def require_type(type_id: int) -> None:
    """Raises TypeMissing when there is no such type; MysqlDown, RedisDown as ``read``."""
    if type_id not in _types:
        _types.put_all({shop_type.id: True for shop_type in read_types()})
        if type_id not in _types:
            raise TypeMissing(f"There is no type {type_id} of shops")


def take_fallback_token(error: RedisDown | StillLoading) -> None:
    """MySQL may be asked, now and then. Raises ``error`` when it may not."""
    if not _fallback_budget.take():
        raise error


def enqueue(message: ShopRefresh | ShopJobStep) -> None:
    """Have it done in the background. When the queue is away, the next reader asks again."""
    try:
        SHOPS.send(message)
    except QueueDown as error:
        record("rebuild_not_queued", {"rebuilds_not_queued": 1}, **error_fields(error))


def entry_of(stored: StoredShop) -> CacheEntry:
    """A shop as the cache keeps it."""
    return CacheEntry(stored.version, stored.to_text())


def entries_of(stored: dict[int, StoredShop]) -> dict[str, CacheEntry]:
    """Shops as the cache keeps them, by their keys."""
    return {redis_store.page_key(shop_id): entry_of(one) for shop_id, one in stored.items()}


def types_entry(types: ShopTypes) -> CacheEntry:
    """The types as the cache keeps them."""
    return CacheEntry(types.version_us, json.dumps(types.types, separators=(",", ":")))


def _find(shop_id: int) -> CachedValue:
    key = redis_store.page_key(shop_id)
    [held] = cache.read_all([key])
    if held is None:
        maybe, ask = redis_store.SHOP_IDS.query(shop_id)
        if ask:
            enqueue(ShopJobStep(FILTER))
        if not maybe:
            raise _missing(shop_id)
        return cache.load_single_flight(STALE_WHILE_REBUILDING, key, lambda: _load(shop_id))
    if held.stale:
        _request_refresh([shop_id])
    return held


def _request_refresh(stale: Sequence[int]) -> None:
    """One of all who find a shop stale has it read again."""
    if not stale:
        return
    claimed = cache.claim_rebuilds([redis_store.page_key(shop_id) for shop_id in stale])
    ours = [shop_id for shop_id, claim in zip(stale, claimed, strict=True) if claim]
    for start in range(0, len(ours), MAX_SHOPS_PER_MESSAGE):
        enqueue(ShopRefresh(ours[start : start + MAX_SHOPS_PER_MESSAGE]))


def _load(shop_id: int) -> CacheEntry:
    stored = mysql_shops.read([shop_id]).get(shop_id)
    return entry_of(stored) if stored else CacheEntry(0, None)


def _load_types() -> CacheEntry:
    return types_entry(mysql_shops.read_types())


def _missing(shop_id: int) -> ShopMissing:
    return ShopMissing(f"There is no shop {shop_id}")
