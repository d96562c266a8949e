"""Search shops nearby: pages of shops around a place, nearest first."""

from __future__ import annotations

from plaza.commerce.shops import mysql_shops, queries, redis_store
from plaza.commerce.shops.model import (
    LIST_START,
    MAX_NEARBY_SHOPS,
    PLACES,
    Area,
    NearCursor,
    NearPage,
    NearShop,
    ShopDistance,
    ShopJobStep,
)
from plaza.commerce.shops.queues import SHOPS
from plaza.commerce.shops.redis_store import NearResult
from plaza.infra.derived.cache import StillLoading
from plaza.infra.http.callers import Charge, no_charge
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.process import LocalCache

# Searches of one process in MySQL while Redis has no places. Each reads all shops of a box.
_fallback_budget = TokenBucket(rate_per_s=5, burst=20)
# About 11 m: less than what a phone knows about its place.
PLACE_DIGITS = 4
RESULT_TTL_S = 2
_results: LocalCache[tuple[Area, ShopDistance, int], NearResult] = LocalCache(1_000, RESULT_TTL_S)


def find_near(
    area: Area, after: NearCursor | None, limit: int, charge: Charge = no_charge
) -> NearPage:
    """Return the shops of an area after ``after``, at most ``MAX_NEARBY_SHOPS`` on all pages.

    The place is rounded to ``PLACE_DIGITS``, and this process keeps the result of a wide search for
    ``RESULT_TTL_S``, for all callers. Two round trips if all is cached and the nearest cells have
    enough shops; else three to five more, charged as ``redis_store.search_near`` says. While Redis
    has no places, MySQL is searched within the fallback budget. A page is shorter if a shop was
    just deleted or moved to another type, and if the search reached the limit of cells and shops
    that it may read. Raises TypeMissing, MysqlDown, TooManyRequests; RedisDown or StillLoading if
    the fallback budget is empty.
    """
    area = area.rounded(PLACE_DIGITS)
    if area.type_id is not None:
        queries.require_type(area.type_id)
    listed = after.listed if after else 0
    limit = min(limit, MAX_NEARBY_SHOPS - listed)
    start = after.last_shop if after else LIST_START
    result = _results.get((area, start, limit))
    if result is None:
        result = _search(area, start, limit + 1, charge)
        if result.is_wide:
            _results.put((area, start, limit), result)
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
        NearCursor(*page[-1], listed) if more else None,
    )


def _search(area: Area, after: ShopDistance, limit: int, charge: Charge) -> NearResult:
    try:
        result = redis_store.search_near(area, after, limit, charge)
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
