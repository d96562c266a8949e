"""Near me: shops around a place, nearest first, a page at a time."""

from __future__ import annotations

from plaza.infra.cache import StillLoading
from plaza.infra.observability import record
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
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
from plaza.shops.redis_store import NearResult

# How often one process may search MySQL in Redis' place. Such a search reads all shops of a box.
_fallback_budget = TokenBucket(rate_per_s=5, burst=20)


def find_near(area: Area, after: NearPosition | None, limit: int) -> NearPage:
    """Returns the shops of an area behind ``after``, at most ``MAX_NEARBY_SHOPS`` on all pages.

    Two round trips when all is warm. While Redis has no set of places, MySQL is asked, as far as
    the budget goes. A page is shorter where a shop was deleted or got another type a moment ago,
    and where a page of full length would take Redis too long. Raises TypeMissing, MysqlDown;
    RedisDown or StillLoading when the budget is used up.
    """
    if area.type_id is not None:
        queries.require_type(area.type_id)
    listed = after.listed if after else 0
    limit = min(limit, MAX_NEARBY_SHOPS - listed)
    look = _search(area, after.last_shop if after else LIST_START, limit + 1)
    found = look.found or []
    page = found[:limit]
    shops = queries.read_many([near.shop_id for near in page])
    listed += len(page)
    more = (len(found) > limit or look.truncated) and page and listed < MAX_NEARBY_SHOPS
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
        look = redis_store.search_near(area, after, limit)
    except RedisDown as error:
        _take_fallback_token(error)
    else:
        if look.build_due:
            queries.enqueue(ShopJobStep(PLACES, area.type_id))
        if look.truncated:
            record(
                "near_search_truncated", {"near_search_truncated": 1}, found=len(look.found or ())
            )
        if look.found is not None:
            return look
        _take_fallback_token(StillLoading("The places of shops are being put together"))
    return NearResult(mysql_shops.find_near(area, after, limit), build_due=False, truncated=False)


def _take_fallback_token(error: RedisDown | StillLoading) -> None:
    """Takes one search of MySQL from the budget. Raises ``error`` when none is left."""
    if not _fallback_budget.take():
        raise error
