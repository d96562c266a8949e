"""Search shops nearby: pages of shops around a place, nearest first."""

from __future__ import annotations

from plaza.infra.derived.cache import StillLoading
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.observability import record
from plaza.shops import mysql_shops, queries, redis_store
from plaza.shops.model import (
    LIST_START,
    MAX_NEARBY_SHOPS,
    PLACES,
    Area,
    NearPage,
    NearPosition,
    NearShop,
    ShopDistance,
    ShopJobStep,
)
from plaza.shops.queues import SHOPS
from plaza.shops.redis_store import NearResult

# Searches of one process in MySQL while Redis has no places. Each reads all shops of a box.
_fallback_budget = TokenBucket(rate_per_s=5, burst=20)


def find_near(area: Area, after: NearPosition | None, limit: int) -> NearPage:
    """Return the shops of an area after ``after``, at most ``MAX_NEARBY_SHOPS`` on all pages.

    Two round trips if all is cached and the nearest cells have enough shops, five at most. While
    Redis has no places, MySQL is searched within the fallback budget. A page is shorter if a shop
    was just deleted or moved to another type, and if the search reached the limit of cells and
    shops that it may read. Raises TypeMissing, MysqlDown; RedisDown or StillLoading if the fallback
    budget is empty.
    """
    if area.type_id is not None:
        queries.require_type(area.type_id)
    listed = after.listed if after else 0
    limit = min(limit, MAX_NEARBY_SHOPS - listed)
    result = _search(area, after.last_shop if after else LIST_START, limit + 1)
    fetched = result.shops or []
    page = fetched[:limit]
    shops = queries.read_many([near.shop_id for near in page])
    listed += len(page)
    more = (len(fetched) > limit or result.truncated) and page and listed < MAX_NEARBY_SHOPS
    return NearPage(
        [
            NearShop(shop, near.distance_m)
            for near in page
            if (shop := shops.get(near.shop_id))
            and (area.type_id is None or shop.type_id == area.type_id)
        ],
        NearPosition(*page[-1], listed) if more else None,
    )


def _search(area: Area, after: ShopDistance, limit: int) -> NearResult:
    try:
        result = redis_store.search_near(area, after, limit)
    except RedisDown as error:
        _take_fallback_token(error)
    else:
        if result.build_due:
            SHOPS.try_send(ShopJobStep(PLACES))
        if result.truncated:
            count = len(result.shops or ())
            record("near_search_truncated", {"near_search_truncated": 1}, found=count)
        if result.shops is not None:
            return result
        _take_fallback_token(StillLoading("The places of shops are not built yet."))
    return NearResult(mysql_shops.find_near(area, after, limit), build_due=False, truncated=False)


def _take_fallback_token(error: RedisDown | StillLoading) -> None:
    """Take one search from the fallback budget. Raises ``error`` if it is empty."""
    if not _fallback_budget.take():
        raise error
