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
from plaza.infra.cache import NEVER_STALE, STALE_THEN_REBUILT, Entry, Held, StillLoading
from plaza.infra.observability import cause, record
from plaza.infra.process import LocalCache
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.shops import mysql_shops, redis_shops
from plaza.shops.mysql_shops import Types
from plaza.shops.queues import SHOPS
from plaza.shops.shops import (
    FILTER,
    MOST_SHOPS,
    Refresh,
    Shop,
    ShopGone,
    ShopMissing,
    ShopType,
    Step,
    Stored,
    TypeMissing,
    read_text,
)

# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_instead_of_redis = TokenBucket(rate_per_s=20, burst=40)
_types: LocalCache[int, bool] = LocalCache(max_entries=1_000, ttl_s=30)


def read(shop_id: int) -> Shop:
    """A shop.

    Raises ShopMissing, ShopGone, MysqlDown; RedisDown when too many ask MySQL instead.
    """
    try:
        held = _find(shop_id)
    except (RedisDown, StillLoading) as error:
        take_the_place_of_redis(error)
        held = Held(*_load(shop_id), stale=False)
    if held.text is None:
        raise _missing(shop_id)
    if (shop := read_text(held.text)) is None:
        raise ShopGone(f"The shop {shop_id} was deleted")
    return shop


def read_many(shop_ids: Sequence[int]) -> dict[int, Shop]:
    """Those of ``shop_ids`` that are there. A round trip when all is warm, else one more and one
    statement. Raises MysqlDown."""
    keys = {shop_id: redis_shops.page_key(shop_id) for shop_id in shop_ids}
    held: dict[int, Held] = {}
    with suppress(RedisDown):
        found = cache.read_all(list(keys.values()))
        held = {i: one for i, one in zip(keys, found, strict=True) if one is not None}
        _have_rebuilt([shop_id for shop_id, one in held.items() if one.stale])
    shops = {i: read_text(one.text) for i, one in held.items() if one.text is not None}
    if missing := [shop_id for shop_id in keys if shop_id not in held]:
        stored = mysql_shops.read(missing)
        with suppress(RedisDown):
            cache.keep_all(STALE_THEN_REBUILT, entries_of(stored), create=True)
        shops |= {i: None if one.deleted else one.shop for i, one in stored.items()}
    return {shop_id: shop for shop_id, shop in shops.items() if shop is not None}


def read_types() -> list[ShopType]:
    """The types of shops in their order. Raises MysqlDown, RedisDown as ``read``."""
    try:
        [held] = cache.read_all([redis_shops.TYPES_KEY])
        if held is None:
            held = cache.load_alone(NEVER_STALE, redis_shops.TYPES_KEY, _load_types)
    except (RedisDown, StillLoading) as error:
        take_the_place_of_redis(error)
        held = Held(*_load_types(), stale=False)
    return [ShopType(*fields) for fields in json.loads(held.text or "[]")]


def require_type(type_id: int) -> None:
    """Raises TypeMissing when there is no such type; MysqlDown, RedisDown as ``read``."""
    if type_id not in _types:
        _types.put_all({shop_type.id: True for shop_type in read_types()})
        if type_id not in _types:
            raise TypeMissing(f"There is no type {type_id} of shops")


def take_the_place_of_redis(error: RedisDown | StillLoading) -> None:
    """MySQL may be asked, now and then. Raises ``error`` when it may not."""
    if not _instead_of_redis.take():
        raise error


def ask_for(message: Refresh | Step) -> None:
    """Have it done in the background. When the queue is away, the next reader asks again."""
    try:
        SHOPS.send(message)
    except QueueDown as error:
        record("rebuild_unasked", {"rebuilds_unasked": 1}, **cause(error))


def entry_of(stored: Stored) -> Entry:
    """A shop as the cache keeps it."""
    return Entry(stored.ver, stored.to_text())


def entries_of(stored: dict[int, Stored]) -> dict[str, Entry]:
    """Shops as the cache keeps them, by their keys."""
    return {redis_shops.page_key(shop_id): entry_of(one) for shop_id, one in stored.items()}


def types_entry(types: Types) -> Entry:
    """The types as the cache keeps them."""
    return Entry(types.ver_us, json.dumps(types.types, separators=(",", ":")))


def _find(shop_id: int) -> Held:
    key = redis_shops.page_key(shop_id)
    [held] = cache.read_all([key])
    if held is None:
        maybe, ask = redis_shops.SHOP_IDS.ask(shop_id)
        if ask:
            ask_for(Step(FILTER))
        if not maybe:
            raise _missing(shop_id)
        return cache.load_alone(STALE_THEN_REBUILT, key, lambda: _load(shop_id))
    if held.stale:
        _have_rebuilt([shop_id])
    return held


def _have_rebuilt(stale: Sequence[int]) -> None:
    """One of all who find a shop stale has it read again."""
    if not stale:
        return
    claimed = cache.claim_rebuilds([redis_shops.page_key(shop_id) for shop_id in stale])
    ours = [shop_id for shop_id, claim in zip(stale, claimed, strict=True) if claim]
    for start in range(0, len(ours), MOST_SHOPS):
        ask_for(Refresh(ours[start : start + MOST_SHOPS]))


def _load(shop_id: int) -> Entry:
    stored = mysql_shops.read([shop_id]).get(shop_id)
    return entry_of(stored) if stored else Entry(0, None)


def _load_types() -> Entry:
    return types_entry(mysql_shops.read_types())


def _missing(shop_id: int) -> ShopMissing:
    return ShopMissing(f"There is no shop {shop_id}")
