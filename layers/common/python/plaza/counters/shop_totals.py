"""How many reviews a shop has, and the sum of their scores: of all that are not deleted.

MySQL changes both in the transaction of the review. Redis keeps them as a first page: 3 s at most,
and until a writer drops them.

{<shard>}:shop:<id>:score  hash  version, value: the two totals, JSON
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from plaza.counters import mysql_shops
from plaza.counters.model import SHOP_COUNTER, ShopCounter
from plaza.counters.mysql_shops import add, correct
from plaza.infra.derived import cache
from plaza.infra.derived.cache import StillLoading
from plaza.infra.derived.projections import key_of
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.process import LocalCache

__all__ = ["add", "correct", "drop", "key", "read"]

_recent: LocalCache[int, ShopCounter] = LocalCache(max_entries=1_000, ttl_s=1)


def key(shop_id: int) -> str:
    """Return the key of a shop's totals, which a writer of a review drops after its commit."""
    return key_of(f"shop:{shop_id}", "score")


def read(shop_id: int, *, is_anonymous: bool = False) -> ShopCounter | None:
    """Return the totals of a shop, at most 3 s old; None while they cannot be read. One round trip,
    none for an anonymous caller if this process read them within 1 s; one more and a statement if
    they are not cached."""
    if is_anonymous and (counter := _recent.get(shop_id)) is not None:
        return counter
    try:
        counter = _read(shop_id)
    except MysqlDown:
        return None
    _recent.put(shop_id, counter)
    return counter


def _read(shop_id: int) -> ShopCounter:
    with suppress(RedisDown, StillLoading):
        [counter] = cache.read_first_page(
            key(shop_id), SHOP_COUNTER, lambda: [mysql_shops.load(shop_id)]
        )
        return counter
    return mysql_shops.load(shop_id)


def drop(shop_ids: Iterable[int]) -> None:
    """Drop the cached totals of shops. One round trip. Raises RedisDown."""
    cache.drop_first_pages(key(shop_id) for shop_id in shop_ids)
