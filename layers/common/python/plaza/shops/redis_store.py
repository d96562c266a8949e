"""Shops in Redis:

{<shard>}:shop:<id>:page     hash    version, value: the shop as JSON (``infra.cache``)
{<shard>}:shops:all:types    hash    version, value: the shop types (``infra.cache``)
{<shard>}:shops:filter               the bloom filter of all shops (``infra.id_filter``)

and for each set of places, a type or ``all``, under ``{<shard>}:shops:<set>:``

    places         zset  shop -> place (GEO)
    versions       hash  shop -> version; of a shop that was removed from MySQL minus the time, in
                         seconds, until which older rows are refused
    places:next    zset  the set that is being built
    versions:next  hash  its versions
    meta           hash  built_at, build_id, build_active_at, build_requested_at
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from plaza.infra import redis
from plaza.infra.hot_keys import Argument
from plaza.infra.id_filter import IdFilter
from plaza.infra.lua import load_script
from plaza.infra.projections import key_of
from plaza.infra.redis import Call
from plaza.shops.model import MAX_LATITUDE, MAX_LONGITUDE, Area, ShopDistance, ShopPlace

T = TypeVar("T")

REBUILD_AFTER_MS = 3_600_000  # repairs places that missed a change
REQUEST_INTERVAL_MS = 5_000
BUILD_TIMEOUT_MS = 120_000
REMOVED_TTL_S = 60  # longer than a process keeps a row that it read before the row was removed
MAX_SHOPS_PER_CALL = 200
# Bounds of the work of Redis for one page of nearby shops.
MAX_CELLS_COUNTED = 256
MAX_SHOPS_MEASURED = 400
# The eastern and northern edges of the map lie beyond the last cell of a GEO set.
_MAX_GRID_X = MAX_LONGITUDE - MAX_LONGITUDE / 2**26
_MAX_GRID_Y = MAX_LATITUDE - MAX_LATITUDE / 2**26

_LUA = Path(__file__).with_name("lua")
BEGIN_PLACES = load_script(_LUA / "begin_places.lua")
FILL_PLACES = load_script(_LUA / "fill_places.lua")
PUT_PLACES = load_script(_LUA / "put_places.lua")
SEARCH_NEAR = load_script(_LUA / "search_near.lua")

TYPES_KEY = key_of("shops:all", "types")
SHOP_IDS = IdFilter("shops")


class PlaceKeys(NamedTuple):
    meta: str
    places: str
    versions: str
    next_places: str
    next_versions: str


class NearResult(NamedTuple):
    """The shops found, None if no set is built; whether the caller must request a build; whether
    the search reached its limit of cells or shops before the page was full."""

    found: list[ShopDistance] | None
    build_due: bool
    truncated: bool


def page_key(shop_id: int) -> str:
    return key_of(f"shop:{shop_id}", "page")


@lru_cache(maxsize=1024)
def place_keys(type_id: int | None) -> PlaceKeys:
    """Return the keys of the places of a type, of all shops if None."""
    name = f"shops:{'all' if type_id is None else type_id}"
    places, versions = key_of(name, "places"), key_of(name, "versions")
    return PlaceKeys(key_of(name, "meta"), places, versions, f"{places}:next", f"{versions}:next")


def put_places(placed: Mapping[int | None, Sequence[ShopPlace]]) -> set[int]:
    """Store the places of shops by type; return the shops to refresh again after REMOVED_TTL_S. One
    round trip. Raises RedisDown."""
    replies = redis.run_all(
        [
            Call(PUT_PLACES, place_keys(type_id), (REMOVED_TTL_S, *_script_args(part)))
            for type_id, shops in placed.items()
            for part in _split(shops)
        ]
    )
    return {int(shop_id) for recheck in replies for shop_id in recheck}


def begin_places(type_id: int | None, build: str) -> str:
    """Begin to build a set of places; return the code of begin_places.lua. One round trip. Raises
    RedisDown."""
    keys = place_keys(type_id)
    script_keys = (keys.meta, keys.next_places, keys.next_versions)
    return str(redis.run(BEGIN_PLACES, script_keys, (build, BUILD_TIMEOUT_MS)))


def fill_places(type_id: int | None, build: str, placed: Sequence[ShopPlace], last: bool) -> str:
    """Add a page to the set that is being built; return the last code of fill_places.lua. One round
    trip. Raises RedisDown."""
    keys, parts = place_keys(type_id), [_script_args(part) for part in _split(placed)] or [[]]
    calls = [Call(FILL_PLACES, keys, (build, 0, *part)) for part in parts[:-1]]
    calls.append(Call(FILL_PLACES, keys, (build, int(last), *parts[-1])))
    return str(redis.run_all(calls)[-1])


def search_near(area: Area, after: ShopDistance, count: int) -> NearResult:
    """Return up to ``count`` shops of an area after ``after``. One round trip. Raises RedisDown."""
    keys = place_keys(area.type_id)
    args: tuple[Argument, ...] = (
        repr(area.place.x),
        repr(area.place.y),
        area.radius_m,
        after.distance,
        after.shop_id,
        count,
        MAX_CELLS_COUNTED,
        MAX_SHOPS_MEASURED,
        REBUILD_AFTER_MS,
        REQUEST_INTERVAL_MS,
    )
    is_built, build_due, truncated, *rest = redis.run(SEARCH_NEAR, (keys.meta, keys.places), args)
    pairs = iter(rest)
    found = [
        ShopDistance(int(distance), int(shop)) for shop, distance in zip(pairs, pairs, strict=True)
    ]
    return NearResult(found if is_built else None, build_due == 1, truncated == 1)


def _split(items: Sequence[T]) -> list[Sequence[T]]:
    """Split ``items`` by MAX_SHOPS_PER_CALL; Redis serves other callers between the calls."""
    return [items[i : i + MAX_SHOPS_PER_CALL] for i in range(0, len(items), MAX_SHOPS_PER_CALL)]


def _script_args(placed: Sequence[ShopPlace]) -> list[Argument]:
    """Return id, version, x and y of each shop, as scripts take them. ``repr`` keeps all digits."""
    args: list[Argument] = []
    for shop_id, version, place in placed:
        args += [shop_id, "" if version is None else version]
        if place is None:
            args += ["", ""]
        else:
            args += [repr(min(place.x, _MAX_GRID_X)), repr(min(place.y, _MAX_GRID_Y))]
    return args
