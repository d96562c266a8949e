"""Near me: shops around a place, nearest first, a page at a time."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.cache import StillLoading
from plaza.infra.redis import RedisDown
from plaza.shops import mysql_shops, reading, redis_shops
from plaza.shops.shops import NEAREST, PLACES, Area, Near, Shop, Step


class NearShop(NamedTuple):
    """A shop, and how far it is."""

    shop: Shop
    distance_m: float


class NearPage(NamedTuple):
    """A page of what is near, and behind whom the next begins (None: the end)."""

    shops: list[NearShop]
    last: Near | None


def find_near(area: Area, after: Near | None, limit: int) -> NearPage:
    """The shops of an area behind ``after``.

    Two round trips when all is warm. While Redis has no set of places, MySQL is asked, now and
    then. A page is shorter where a shop was deleted or got another type a moment ago. Raises
    TypeMissing, MysqlDown; RedisDown or StillLoading when too many ask MySQL instead.
    """
    if area.type_id is not None:
        reading.require_type(area.type_id)
    found = _find(area, after or NEAREST, limit + 1)
    page = found[:limit]
    shops = reading.read_many([near.shop_id for near in page])
    return NearPage(
        [
            NearShop(shop, near.distance_m)
            for near in page
            if (shop := shops.get(near.shop_id))
            and (area.type_id is None or shop.type_id == area.type_id)
        ],
        page[-1] if len(found) > limit else None,
    )


def _find(area: Area, after: Near, limit: int) -> list[Near]:
    try:
        look = redis_shops.look_near(area, after, limit)
    except RedisDown as error:
        reading.take_the_place_of_redis(error)
    else:
        if look.ask:
            reading.ask_for(Step(PLACES, area.type_id))
        if look.found is not None:
            return look.found
        reading.take_the_place_of_redis(StillLoading("The places of shops are being put together"))
    return mysql_shops.find_near(area, after, limit)
