"""Shops: near me around 200,000 of them, and full pages of builds."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator

from bench.scripts.cases import Case
from bench.stage import Stage
from plaza.infra import redis
from plaza.shops import Area, Place, redis_shops
from plaza.shops.shops import MOST_RADIUS_M, NEAREST, Near, Placed

SHOPS = 200_000
CITY = Place(13.4, 52.52)
CITY_M = 5_000
DEGREE_M = 111_195
PAGE = 101  # a page of 100 and one more, which tells that there is another page
BUILD = "bench"
Point = tuple[float, float]


def _disc(count: int) -> Iterator[Point]:
    """A city: as many shops on every square metre of a circle."""
    chance = random.Random(1)
    for _ in range(count):
        yield _point(CITY_M * math.sqrt(chance.random()), chance.uniform(0, 2 * math.pi))


def _ring(count: int) -> Iterator[Point]:
    """All of them equally far from the place that is asked about."""
    for i in range(count):
        yield _point(CITY_M, 2 * math.pi * i / count)


def _point(far_m: float, way: float) -> Point:
    east = far_m * math.sin(way) / (DEGREE_M * math.cos(math.radians(CITY.y)))
    return CITY.x + east, CITY.y + far_m * math.cos(way) / DEGREE_M


def _fill(points: Callable[[int], Iterator[Point]]) -> Callable[[Stage], None]:
    def fill(stage: Stage) -> None:
        keys = redis_shops.place_keys(None)
        found = list(enumerate(points(stage.some(SHOPS)), 1))
        for start in range(0, len(found), 5_000):
            some = [part for i, (x, y) in found[start : start + 5_000] for part in (x, y, i)]
            redis.execute("GEOADD", keys.places, *some)
        redis.execute("HSET", keys.meta, "built_at", time.time_ns() // 1_000_000)

    return fill


def _look(place: Place, after: Near = NEAREST) -> Callable[[int], object]:
    return lambda run: redis_shops.look_near(Area(place, MOST_RADIUS_M, None), after, PAGE)


def _placed(run: int) -> list[Placed]:
    """As many as one run of a script takes, all of them new."""
    count = redis_shops.MAX_SHOPS_PER_CALL
    points = enumerate(_disc(count), 1 + run * count)
    return [Placed(shop_id, 1, Place(*point)) for shop_id, point in points]


def _begin_both(stage: Stage) -> None:
    _fill(_disc)(stage)
    redis_shops.begin_places(None, BUILD)


def _finish(run: int) -> None:
    """The last page of a build, which takes the place of a whole set."""
    redis_shops.begin_places(None, BUILD)
    redis_shops.fill_places(None, BUILD, _placed(0), last=True)


_AWAY = Place(CITY.x, CITY.y + (MOST_RADIUS_M - 1_000) / DEGREE_M)

CASES = [
    Case("in a city", redis_shops.LOOK_NEAR, _fill(_disc), _look(CITY)),
    Case("49 km from a city", redis_shops.LOOK_NEAR, _fill(_disc), _look(_AWAY)),
    Case("shops equally far", redis_shops.LOOK_NEAR, _fill(_ring), _look(CITY)),
    Case(
        "behind a cursor of 4 km",
        redis_shops.LOOK_NEAR,
        _fill(_disc),
        _look(CITY, Near(4_000 * 10_000, 1)),
    ),
    Case(
        "as many as one call takes",
        redis_shops.PUT_PLACES,
        _begin_both,
        lambda run: redis_shops.put_places({None: _placed(run)}),
    ),
    Case(
        "as many as one call takes",
        redis_shops.FILL_PLACES,
        _begin_both,
        lambda run: redis_shops.fill_places(None, BUILD, _placed(run), last=False),
    ),
    Case("the last page", redis_shops.FILL_PLACES, _fill(_disc), _finish),
    Case(
        "after a build that was left alone",
        redis_shops.BEGIN_PLACES,
        _fill(_disc),
        lambda run: redis_shops.begin_places(None, f"{BUILD}{run}"),
    ),
]
