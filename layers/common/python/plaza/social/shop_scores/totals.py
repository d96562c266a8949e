"""How many reviews a shop has, and the sum of their scores: of all that are not deleted.

MySQL changes both in the transaction of the review. Redis keeps them for a minute at most: each
change of a review drops them, and its announced refresh drops them again.

{<shard>}:shop:<id>:score  hash  version, value: the two totals, JSON
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from plaza.infra.derived import cache
from plaza.infra.derived.cache import CachedValue, CacheEntry, Policy, StillLoading
from plaza.infra.derived.projections import key_of
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.social.shop_scores import mysql_store
from plaza.social.shop_scores.model import SHOP_COUNTER, ShopCounter
from plaza.social.shop_scores.mysql_store import add, correct

__all__ = ["SHOP_COUNTER", "add", "correct", "drop", "key", "read"]

POLICY = Policy(ttl_s=60)


def key(shop_id: int) -> str:
    """Return the key of a shop's totals, which a writer of a review drops after its commit."""
    return key_of(f"shop:{shop_id}", "score")


def read(shop_id: int, cached: CachedValue[list[ShopCounter]] | None = None) -> ShopCounter | None:
    """Return the totals of a shop, which may be ``cached``; None while they cannot be read. At most
    four round trips and a statement, two more for the first reader of a shop without a counter."""
    try:
        with suppress(RedisDown, StillLoading):
            if cached is None:
                cached = cache.load_single_flight(
                    POLICY,
                    key(shop_id),
                    SHOP_COUNTER,
                    lambda: CacheEntry(clock.now_us(), [mysql_store.load(shop_id)]),
                )
            if cached.value:
                return cached.value[0]
        return mysql_store.load(shop_id)
    except MysqlDown:
        return None


def drop(shop_ids: Iterable[int]) -> None:
    """Drop the cached totals of shops. One round trip. Raises RedisDown."""
    cache.drop_first_pages(key(shop_id) for shop_id in shop_ids)
