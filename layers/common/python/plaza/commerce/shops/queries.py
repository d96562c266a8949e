"""Read shops and their types from Redis, and from MySQL if Redis does not have them.

A cached shop costs one round trip. For an uncached id the bloom filter is queried first: an id
that it does not have costs no statement; for others one reader reads MySQL and the rest wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from plaza.commerce.shops import mysql_shops, redis_store
from plaza.commerce.shops.model import (
    FILTER,
    MAX_SHOPS_PER_MESSAGE,
    SHOP,
    TYPES,
    Shop,
    ShopDeleted,
    ShopJobStep,
    ShopMissing,
    ShopRefresh,
    ShopType,
    StoredShop,
    TypeMissing,
)
from plaza.commerce.shops.mysql_shops import ShopTypes
from plaza.commerce.shops.queues import SHOPS
from plaza.infra.contexts import offers
from plaza.infra.derived import cache
from plaza.infra.derived.cache import (
    NEVER_STALE,
    STALE_WHILE_REBUILDING,
    CachedValue,
    CacheEntry,
    StillLoading,
)
from plaza.infra.redis import redis
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.hot_reads import HotReads
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.codec import DELETED, Deleted
from plaza.infra.runtime.process import LocalCache

Totals = tuple[int, int]
"""The number of a shop's reviews and the sum of their scores."""


class _Page(NamedTuple):
    """What a page shows of a shop; the totals of its reviews are None while MySQL is unavailable,
    and in a deployment without reviews."""

    shop: CachedValue[Shop | Deleted]
    totals: Totals | None


# Reads of one process from MySQL while Redis is unavailable.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)
_hot_pages: HotReads[int, _Page] = HotReads(redis_store.page_key)
_types: LocalCache[int, bool] = LocalCache(max_entries=1_000, ttl_s=30)


def read(shop_id: int) -> Shop:
    """Return a shop. Raises ShopMissing, ShopDeleted, MysqlDown; RedisDown or StillLoading if the
    fallback budget is empty."""
    try:
        [cached] = cache.read_all([redis_store.page_key(shop_id)], SHOP)
        shop = _complete(shop_id, cached)
    except (RedisDown, StillLoading) as error:
        take_fallback_token(error)
        shop = CachedValue(*_load(shop_id), stale=False)
    return _require(shop_id, shop)


def read_reviewed(shop_id: int, *, is_anonymous: bool) -> tuple[Shop, Totals | None]:
    """Return a shop and the totals of its reviews, None while they cannot be read; both up to 2 s
    late for a hot shop if the caller ``is_anonymous``. One round trip if both are cached. Raises as
    ``read``."""
    try:
        if is_anonymous:
            page = _hot_pages.read_all(
                [shop_id], lambda _, source: {shop_id: _find_page(shop_id, source)}
            )[shop_id]
        else:
            page = _find_page(shop_id)
    except (RedisDown, StillLoading) as error:
        take_fallback_token(error)
        page = _build_page(shop_id, CachedValue(*_load(shop_id), stale=False))
    return _require(shop_id, page.shop), page.totals


def _require(shop_id: int, cached: CachedValue[Shop | Deleted]) -> Shop:
    if cached.value is None:
        raise _missing(shop_id)
    if isinstance(cached.value, Deleted):
        raise ShopDeleted(f"Shop {shop_id} was deleted.")
    return cached.value


def read_many(shop_ids: Sequence[int]) -> dict[int, Shop]:
    """Return the shops that exist. One round trip if all are cached, otherwise one more
    and one statement. Raises MysqlDown."""
    keys = {shop_id: redis_store.page_key(shop_id) for shop_id in shop_ids}
    cached: dict[int, CachedValue[Shop | Deleted]] = {}
    with suppress(RedisDown):
        replies = cache.read_all(list(keys.values()), SHOP)
        cached = {i: entry for i, entry in zip(keys, replies, strict=True) if entry is not None}
        _request_refresh([shop_id for shop_id, entry in cached.items() if entry.stale])
    shops = {i: entry.value for i, entry in cached.items()}
    if missing := [shop_id for shop_id in keys if shop_id not in cached]:
        stored = mysql_shops.read(missing)
        with suppress(RedisDown):
            cache.store_all(STALE_WHILE_REBUILDING, entries_of(stored), SHOP, create=True)
        shops |= {i: entry_of(entry).value for i, entry in stored.items()}
    return {shop_id: shop for shop_id, shop in shops.items() if isinstance(shop, Shop)}


def warm_pages(targets: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Cache the pages of the shops in ``targets``, as ``read_many``; return no more targets."""
    if shop_ids := [target_id for target_type, target_id in targets if target_type == "shop"]:
        read_many(shop_ids)
    return []


def read_types() -> list[ShopType]:
    """Return the shop types by ``sort``. Raises MysqlDown; RedisDown or StillLoading as ``read``.
    One round trip if they are cached, otherwise at most one statement more."""
    try:
        [cached] = cache.read_all([redis_store.TYPES_KEY], TYPES)
        if cached is None:
            cached = cache.load_single_flight(
                NEVER_STALE, redis_store.TYPES_KEY, TYPES, _load_types
            )
    except (RedisDown, StillLoading) as error:
        take_fallback_token(error)
        cached = CachedValue(*_load_types(), stale=False)
    return cached.value or []


def read_type(type_id: int) -> ShopType:
    """Return a shop type. Raises TypeMissing; otherwise as ``read_types``."""
    for shop_type in read_types():
        if shop_type.id == type_id:
            return shop_type
    raise TypeMissing(f"Shop type {type_id} does not exist.")


def require_type(type_id: int) -> None:
    """Raise TypeMissing if the type does not exist; otherwise as ``read_types``."""
    if type_id not in _types:
        _types.put_all({shop_type.id: True for shop_type in read_types()})
        if type_id not in _types:
            raise TypeMissing(f"Shop type {type_id} does not exist.")


def take_fallback_token(error: RedisDown | StillLoading) -> None:
    """Take one read from the fallback budget. Raises ``error`` if it is empty."""
    if not _fallback_budget.take():
        raise error


def entry_of(stored: StoredShop) -> CacheEntry[Shop | Deleted]:
    return CacheEntry(stored.version, DELETED if stored.deleted else stored.shop)


def entries_of(stored: dict[int, StoredShop]) -> dict[str, CacheEntry[Shop | Deleted]]:
    return {redis_store.page_key(shop_id): entry_of(shop) for shop_id, shop in stored.items()}


def types_entry(types: ShopTypes) -> CacheEntry[list[ShopType]]:
    return CacheEntry(types.version_us, types.types)


def _find_page(shop_id: int, source: RunAll = redis.run_all) -> _Page:
    page_key, totals = redis_store.page_key(shop_id), None
    if reviews := _find_reviews():
        of_reviews = reviews.key(shop_id), reviews.SHOP_COUNTER
        cached, totals = cache.read_pair((page_key, SHOP), of_reviews, source)
    else:
        [cached] = cache.read_all([page_key], SHOP, source)
    return _build_page(shop_id, _complete(shop_id, cached), totals)


def _build_page(
    shop_id: int,
    shop: CachedValue[Shop | Deleted],
    totals: CachedValue[list[Totals]] | None = None,
) -> _Page:
    """Return the page of a shop; its totals may be cached."""
    exists = isinstance(shop.value, Shop)  # others have no counter, and get none
    reviews = _find_reviews() if exists else None
    return _Page(shop, reviews.read(shop_id, totals) if reviews else None)


def _find_reviews() -> Any | None:
    """Return the module with the review totals of shops; None in a deployment without reviews."""
    return next((totals for _, totals in offers("review_totals")), None)


def _complete(
    shop_id: int, cached: CachedValue[Shop | Deleted] | None
) -> CachedValue[Shop | Deleted]:
    """Return what was ``cached``, or load it; have a stale shop refreshed."""
    if cached is None:
        may_exist, build_due = redis_store.SHOP_IDS.query(shop_id)
        if build_due:
            SHOPS.try_send(ShopJobStep(FILTER))  # else the next reader sends it
        if not may_exist:
            raise _missing(shop_id)
        return cache.load_single_flight(
            STALE_WHILE_REBUILDING, redis_store.page_key(shop_id), SHOP, lambda: _load(shop_id)
        )
    if cached.stale:
        _request_refresh([shop_id])
    return cached


def _request_refresh(stale: Sequence[int]) -> None:
    """Queue the refresh of stale shops that no other reader has claimed."""
    if not stale:
        return
    claims = cache.claim_rebuilds([redis_store.page_key(shop_id) for shop_id in stale])
    claimed = [shop_id for shop_id, claim in zip(stale, claims, strict=True) if claim]
    for start in range(0, len(claimed), MAX_SHOPS_PER_MESSAGE):
        SHOPS.try_send(ShopRefresh(claimed[start : start + MAX_SHOPS_PER_MESSAGE]))


def _load(shop_id: int) -> CacheEntry[Shop | Deleted]:
    stored = mysql_shops.read([shop_id]).get(shop_id)
    return entry_of(stored) if stored else CacheEntry(0, None)


def _load_types() -> CacheEntry[list[ShopType]]:
    return types_entry(mysql_shops.read_types())


def _missing(shop_id: int) -> ShopMissing:
    return ShopMissing(f"Shop {shop_id} does not exist.")
