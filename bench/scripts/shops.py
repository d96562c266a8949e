"""Shops: searches near a place among 200,000, and full pages of builds."""

import math
import random
from collections.abc import Callable, Iterator

from bench.harness import Harness
from bench.scripts.cases import Case
from plaza.commerce.shops import Area, Place, cells, redis_store
from plaza.commerce.shops.model import LIST_START, MAX_RADIUS_M, ShopDistance, ShopPlace
from plaza.infra.redis import redis

SHOPS = 200_000
CITY = Place(13.4, 52.52)
CITY_M = 5_000
DEGREE_M = 111_195
PAGE = 101  # a page of 100, and one more to detect another page
BUILD = "bench"
TYPE = 1
CELL = cells.cell_of(CITY)
Point = tuple[float, float]


def _disc(count: int) -> Iterator[Point]:
    chance = random.Random(1)
    for _ in range(count):
        yield _point(CITY_M * math.sqrt(chance.random()), chance.uniform(0, 2 * math.pi))


def _notify(count: int) -> Iterator[Point]:
    for i in range(count):
        yield _point(CITY_M, 2 * math.pi * i / count)


def _point(distance_m: float, angle: float) -> Point:
    east = distance_m * math.sin(angle) / (DEGREE_M * math.cos(math.radians(CITY.y)))
    return CITY.x + east, CITY.y + distance_m * math.cos(angle) / DEGREE_M


def _fill(points: Callable[[int], Iterator[Point]]) -> Callable[[Harness], None]:
    def fill(harness: Harness) -> None:
        redis_store.begin_places(BUILD)
        placed = [
            ShopPlace(i, 1, Place(*point), TYPE)
            for i, point in enumerate(points(harness.scale(SHOPS)), 1)
        ]
        for start in range(0, len(placed), 5_000):
            redis_store.put_places(placed[start : start + 5_000], [TYPE])
        redis_store.fill_places(BUILD, [], [TYPE], last=True)

    return fill


def _search(place: Place, after: ShopDistance = LIST_START) -> Callable[[int], object]:
    """Search the cell in the middle of the city from ``place``."""
    area = Area(place, MAX_RADIUS_M, None)
    [cell] = [
        candidate
        for candidate in cells.find_cells(area, after.distance)
        if candidate.number == CELL
    ]
    return lambda run: redis.run_all([redis_store.search_call(area, cell, after, PAGE)])


def _move(run: int) -> None:
    """Run the script for as many shops of one shard as it takes."""
    args: list[int] = [redis_store.REMOVED_TTL_S]
    for i in range(redis_store.MAX_SHOPS_PER_CALL):
        args += [i, 1 + run, run % 2]
    redis.run(redis_store.MOVE_SHOPS, (redis_store.placed_key(1),), args)


def _place(run: int) -> None:
    args: list[float] = [CELL]
    for i, point in enumerate(_disc(redis_store.MAX_SHOPS_PER_CALL)):
        args += [i, 1 + run, 2, *point]
    redis.run(redis_store.PLACE_SHOPS, redis_store.cell_keys(CELL, [TYPE]), args)


def _sweep_cell(run: int) -> None:
    args = CELL, 2**53, 0, redis_store.SWEEP_COUNT
    redis.run(redis_store.SWEEP_CELL, redis_store.cell_keys(CELL, [TYPE]), args)


def _sweep_placed(run: int) -> None:
    key = redis_store.placed_key(1 + run)
    redis.run(redis_store.SWEEP_PLACED, (key,), (2**53, 0, redis_store.SWEEP_COUNT))


def _begin(harness: Harness) -> None:
    redis_store.begin_places(BUILD)


_AWAY = Place(CITY.x, CITY.y + (MAX_RADIUS_M - 1_000) / DEGREE_M)

CASES = [
    Case("in a city", redis_store.SEARCH_NEAR, _fill(_disc), _search(CITY)),
    Case("49 km from a city", redis_store.SEARCH_NEAR, _fill(_disc), _search(_AWAY)),
    Case("shops equally far", redis_store.SEARCH_NEAR, _fill(_notify), _search(CITY)),
    Case(
        "behind a cursor of 2 km",
        redis_store.SEARCH_NEAR,
        _fill(_disc),
        _search(CITY, ShopDistance(2_000 * 10_000, 1)),
    ),
    Case("as many as one call takes", redis_store.MOVE_SHOPS, _begin, _move),
    Case("as many as one call takes", redis_store.PLACE_SHOPS, _begin, _place),
    Case("a page of a full cell", redis_store.SWEEP_CELL, _fill(_disc), _sweep_cell),
    Case("a page of a full shard", redis_store.SWEEP_PLACED, _fill(_disc), _sweep_placed),
    Case(
        "of the active build",
        redis_store.TOUCH_PLACES,
        _begin,
        lambda run: redis.run(redis_store.TOUCH_PLACES, (redis_store.BUILD_KEY,), (BUILD, 0)),
    ),
    Case(
        "after an abandoned build",
        redis_store.BEGIN_PLACES,
        _begin,
        lambda run: redis_store.begin_places(f"{BUILD}{run}"),
    ),
]
