"""Shops: searches near a place among 200,000, and full pages of builds."""

import math
import random
import time
from collections.abc import Callable, Iterator

from bench.harness import Harness
from bench.scripts.cases import Case
from plaza.infra import redis
from plaza.shops import Area, Place, redis_store
from plaza.shops.model import LIST_START, MAX_RADIUS_M, ShopDistance, ShopPlace

SHOPS = 200_000
CITY = Place(13.4, 52.52)
CITY_M = 5_000
DEGREE_M = 111_195
PAGE = 101  # a page of 100, and one more to detect another page
BUILD = "bench"
Point = tuple[float, float]


def _disc(count: int) -> Iterator[Point]:
    chance = random.Random(1)
    for _ in range(count):
        yield _point(CITY_M * math.sqrt(chance.random()), chance.uniform(0, 2 * math.pi))


def _ring(count: int) -> Iterator[Point]:
    for i in range(count):
        yield _point(CITY_M, 2 * math.pi * i / count)


def _point(distance_m: float, angle: float) -> Point:
    east = distance_m * math.sin(angle) / (DEGREE_M * math.cos(math.radians(CITY.y)))
    return CITY.x + east, CITY.y + distance_m * math.cos(angle) / DEGREE_M


def _fill(points: Callable[[int], Iterator[Point]]) -> Callable[[Harness], None]:
    def fill(harness: Harness) -> None:
        keys = redis_store.place_keys(None)
        found = list(enumerate(points(harness.scale(SHOPS)), 1))
        for start in range(0, len(found), 5_000):
            some = [part for i, (x, y) in found[start : start + 5_000] for part in (x, y, i)]
            redis.execute("GEOADD", keys.places, *some)
        redis.execute("HSET", keys.meta, "built_at", time.time_ns() // 1_000_000)

    return fill


def _search(place: Place, after: ShopDistance = LIST_START) -> Callable[[int], object]:
    return lambda run: redis_store.search_near(Area(place, MAX_RADIUS_M, None), after, PAGE)


def _placed(run: int) -> list[ShopPlace]:
    """Return as many new shops as one run of a script takes."""
    count = redis_store.MAX_SHOPS_PER_CALL
    points = enumerate(_disc(count), 1 + run * count)
    return [ShopPlace(shop_id, 1, Place(*point)) for shop_id, point in points]


def _begin_both(harness: Harness) -> None:
    _fill(_disc)(harness)
    redis_store.begin_places(None, BUILD)


def _finish(run: int) -> None:
    """Write the last page of a build, which replaces a whole set."""
    redis_store.begin_places(None, BUILD)
    redis_store.fill_places(None, BUILD, _placed(0), last=True)


_AWAY = Place(CITY.x, CITY.y + (MAX_RADIUS_M - 1_000) / DEGREE_M)

CASES = [
    Case("in a city", redis_store.SEARCH_NEAR, _fill(_disc), _search(CITY)),
    Case("49 km from a city", redis_store.SEARCH_NEAR, _fill(_disc), _search(_AWAY)),
    Case("shops equally far", redis_store.SEARCH_NEAR, _fill(_ring), _search(CITY)),
    Case(
        "behind a cursor of 4 km",
        redis_store.SEARCH_NEAR,
        _fill(_disc),
        _search(CITY, ShopDistance(4_000 * 10_000, 1)),
    ),
    Case(
        "as many as one call takes",
        redis_store.PUT_PLACES,
        _begin_both,
        lambda run: redis_store.put_places({None: _placed(run)}),
    ),
    Case(
        "as many as one call takes",
        redis_store.FILL_PLACES,
        _begin_both,
        lambda run: redis_store.fill_places(None, BUILD, _placed(run), last=False),
    ),
    Case("the last page", redis_store.FILL_PLACES, _fill(_disc), _finish),
    Case(
        "after an abandoned build",
        redis_store.BEGIN_PLACES,
        _fill(_disc),
        lambda run: redis_store.begin_places(None, f"{BUILD}{run}"),
    ),
]
