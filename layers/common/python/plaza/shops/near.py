"""Near me: shops around a place, nearest first, a page at a time."""

from __future__ import annotations

from plaza.infra.cache import StillLoading
from plaza.infra.observability import record
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.shops import mysql_shops, reading, redis_shops
from plaza.shops.redis_shops import Look
from plaza.shops.shops import (
    MOST_NEAR,
    NEAREST,
    PLACES,
    Area,
    Near,
    NearPage,
    NearShop,
    Position,
    Step,
)

# How often one process may search MySQL in Redis' place. Such a search reads all shops of a box.
_fallback_budget = TokenBucket(rate_per_s=5, burst=20)


def find_near(area: Area, after: Position | None, limit: int) -> NearPage:
    """Returns the shops of an area behind ``after``, at most ``MOST_NEAR`` on all pages.

    Two round trips when all is warm. While Redis has no set of places, MySQL is asked, as far as
    the budget goes. A page is shorter where a shop was deleted or got another type a moment ago,
    and where a page of full length would take Redis too long. Raises TypeMissing, MysqlDown;
    RedisDown or StillLoading when the budget is used up.
    """
    if area.type_id is not None:
        reading.require_type(area.type_id)
    listed = after.listed if after else 0
    limit = min(limit, MOST_NEAR - listed)
    look = _look(area, after.near if after else NEAREST, limit + 1)
    found = look.found or []
    page = found[:limit]
    shops = reading.read_many([near.shop_id for near in page])
    listed += len(page)
    more = (len(found) > limit or look.cut) and page and listed < MOST_NEAR
    return NearPage(
        [
            NearShop(shop, near.distance_m)
            for near in page
            if (shop := shops.get(near.shop_id))
            and (area.type_id is None or shop.type_id == area.type_id)
        ],
        Position(*page[-1], listed) if more else None,
    )


def _look(area: Area, after: Near, limit: int) -> Look:
    try:
        look = redis_shops.look_near(area, after, limit)
    except RedisDown as error:
        _take_from_budget(error)
    else:
        if look.ask:
            reading.ask_for(Step(PLACES, area.type_id))
        if look.cut:
            record("near_cut_short", {"near_cut_short": 1}, found=len(look.found or ()))
        if look.found is not None:
            return look
        _take_from_budget(StillLoading("The places of shops are being put together"))
    return Look(mysql_shops.find_near(area, after, limit), ask=False, cut=False)


def _take_from_budget(error: RedisDown | StillLoading) -> None:
    """Takes one search of MySQL from the budget. Raises ``error`` when none is left."""
    if not _fallback_budget.take():
        raise error
