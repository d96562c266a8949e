"""Shops in Redis:

{<shard>}:shop:<id>:page     hash    version, value: the shop as JSON (``infra.derived.cache``)
{<shard>}:shops:all:types    hash    version, value: the shop types (``infra.derived.cache``)
{<shard>}:shops:filter               the bloom filter of all shops (``infra.derived.id_filter``)

and their places, by cells (``shops.cells``), so that no key grows with all shops:

    {<shard of the shop>}:shops:placed      hash  shop -> version, last move and cells, see
                                                  lua/move_shops.lua
    {<shard of the cell>}:shops:<cell>:<set>   zset  shop -> place (GEO); ``all`` or a type
    {<shard of the cell>}:shops:<cell>:moves   hash  shop -> its last move in this cell
    {<shard>}:shops:cells                   set   cells of the shard that may have shops
    {<shard>}:shops:places:meta             hash  built_at, build_requested_at
    {<shard>}:shops:places:build            hash  the active build; one key
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from itertools import count as count_from
from pathlib import Path
from typing import NamedTuple, TypeVar

from plaza.commerce.shops import cells
from plaza.commerce.shops.cells import CELL_SIDE, Cell
from plaza.commerce.shops.model import Area, ShopDistance, ShopPlace
from plaza.infra.derived.id_filter import IdFilter
from plaza.infra.derived.projections import key_of
from plaza.infra.http.callers import Charge, no_charge
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Argument, Call
from plaza.infra.redis.scripts import Script, load_script
from plaza.infra.redis.shards import SHARDS, shard_of

T = TypeVar("T")

REBUILD_AFTER_MS = 3_600_000  # repairs places that missed a change
REQUEST_INTERVAL_MS = 5_000
BUILD_TIMEOUT_MS = 120_000
REMOVED_TTL_S = 60  # longer than a process keeps a row that it read before the row was removed
MAX_SHOPS_PER_CALL = 200
# Bounds of the work of Redis for one cell of a page of nearby shops.
MAX_CELLS_COUNTED = 256
MAX_SHOPS_MEASURED = 400
# Cells of a page that are searched in one round trip, and the most where they have few shops. A
# page that has found a shop makes no more than MAX_TRIPS searches.
CELLS_PER_TRIP = 4
MAX_CELLS_PER_TRIP = 128
MAX_TRIPS = 3
# Tokens of the rate limit for a page that the nearest cells do not fill, and for each search then.
WIDE_SEARCH_TOKENS = 4
TRIP_TOKENS = 2
SWEEP_COUNT = 500
_MAX_SWEPT = 500  # keys swept in one round trip
SWEEP_MARGIN_US = 60_000_000  # a process may be late by so much with a move from before the build

_LUA = Path(__file__).with_name("lua")
BEGIN_PLACES = load_script(_LUA / "begin_places.lua")
TOUCH_PLACES = load_script(_LUA / "touch_places.lua")
MOVE_SHOPS = load_script(_LUA / "move_shops.lua")
PLACE_SHOPS = load_script(_LUA / "place_shops.lua")
SWEEP_CELL = load_script(_LUA / "sweep_cell.lua")
SWEEP_PLACED = load_script(_LUA / "sweep_placed.lua")
SEARCH_NEAR = load_script(_LUA / "search_near.lua")

TYPES_KEY = key_of("shops:all", "types")
SHOP_IDS = IdFilter("shops")


class SearchArguments(NamedTuple):
    """The arguments of search_near.lua, by the names in its header."""

    x: str
    y: str
    radius_m: int
    after_distance: int
    after_shop: int
    max_found: int
    max_cells: int
    max_shops: int
    rebuild_after_ms: int
    request_interval_ms: int
    column: int
    row: int
    side: int
    first_score: int


class NearResult(NamedTuple):
    """The shops, None if places are not built; whether the caller must request a build; whether a
    limit of cells or shops was reached before the page was full, and whether the nearest cells
    were not enough."""

    shops: list[ShopDistance] | None
    build_due: bool
    truncated: bool
    is_wide: bool = False


def page_key(shop_id: int) -> str:
    return key_of(f"shop:{shop_id}", "page")


BUILD_KEY = key_of("shops:places", "build")


def set_key(cell: int, type_id: int | None) -> str:
    """Return the key of the places of a type in a cell, of all its shops if None."""
    return key_of(f"shops:{cell}", "all" if type_id is None else str(type_id))


def moves_key(cell: int) -> str:
    return key_of(f"shops:{cell}", "moves")


def _of_shard(shard: int, what: str) -> str:
    return f"{{{shard}}}:shops:{what}"


def placed_key(shop_id: int) -> str:
    return _of_shard(shard_of(f"shop:{shop_id}"), "placed")


def meta_key(cell: int) -> str:
    return _of_shard(shard_of(f"shops:{cell}"), "places:meta")


def _cells_key(cell: int) -> str:
    return _of_shard(shard_of(f"shops:{cell}"), "cells")


def cell_keys(cell: int, type_ids: Sequence[int]) -> list[str]:
    """Return the keys of place_shops.lua and sweep_cell.lua, which has a set for each type."""
    sets = [set_key(cell, type_id) for type_id in (None, *type_ids)]
    return [_cells_key(cell), moves_key(cell), *sets]


def put_places(shops: Sequence[ShopPlace], type_ids: Sequence[int]) -> set[int]:
    """Store the places of shops; return the shops to refresh again after REMOVED_TTL_S.

    ``type_ids`` are all types. Two round trips: one decides by version, one stores. If this process
    ends between them, a repeat stores it. Raises RedisDown.
    """
    recheck: set[int] = set()
    moves: dict[int, list[list[Argument]]] = defaultdict(list)  # cell -> arguments
    numbers = {type_id: number for number, type_id in enumerate(type_ids, 2)}
    by_id = {shop.shop_id: shop for shop in shops}
    for again, *moved in redis.run_all(list(_move_calls(shops))):
        recheck |= set(map(int, again))
        parts = iter(moved)
        for shop_id, move, in_cells in zip(parts, parts, parts, strict=True):
            shop = by_id[int(shop_id)]
            place = cells.fit(shop.place) if shop.place else None
            for cell in map(int, filter(None, in_cells.split(","))):
                if place is not None and cell == cells.cell_of(place):
                    number = numbers.get(shop.type_id or 0, 1)
                    moves[cell].append([shop_id, move, number, repr(place.x), repr(place.y)])
                else:
                    moves[cell].append([shop_id, move, 0, "", ""])
    redis.run_all(
        [
            Call(
                PLACE_SHOPS, cell_keys(cell, type_ids), (cell, *(a for shop in part for a in shop))
            )
            for cell, moved in moves.items()
            for part in _split(moved)
        ]
    )
    return recheck


def _move_calls(shops: Sequence[ShopPlace]) -> Iterator[Call]:
    by_key: dict[str, list[ShopPlace]] = defaultdict(list)
    for shop in shops:
        by_key[placed_key(shop.shop_id)].append(shop)
    for key, of_shard in by_key.items():
        for part in _split(of_shard):
            args: list[Argument] = [REMOVED_TTL_S]
            for shop_id, version, place, _ in part:
                cell = "" if place is None else cells.cell_of(cells.fit(place))
                args += [shop_id, "" if version is None else version, cell]
            yield Call(MOVE_SHOPS, (key,), args)


def begin_places(build: str) -> str:
    """Begin to build the places of all shops; return the code of begin_places.lua. One round trip.
    Raises RedisDown."""
    return str(redis.run(BEGIN_PLACES, (BUILD_KEY,), (build, BUILD_TIMEOUT_MS)))


def fill_places(build: str, shops: Sequence[ShopPlace], type_ids: Sequence[int], last: bool) -> str:
    """Add a page to a build; after the last one remove what the build did not store, and let
    searches use the places. Return FILLED, FINISHED or LOST. Three round trips, after the last page
    more, each of bounded work. Raises RedisDown."""
    began_us = redis.run(TOUCH_PLACES, (BUILD_KEY,), (build, 0))
    if not began_us:
        return "LOST"
    put_places(shops, type_ids)
    if not last:
        return "FILLED"
    _sweep(began_us - SWEEP_MARGIN_US, type_ids)
    built: list[tuple[Argument, ...]] = []
    for meta in (_of_shard(shard, "places:meta") for shard in range(SHARDS)):
        built += [("UNLINK", meta), ("HSET", meta, "built_at", began_us // 1_000)]
    redis.pipeline(built)
    redis.run(TOUCH_PLACES, (BUILD_KEY,), (build, 1))
    return "FINISHED"


def _sweep(before_us: int, type_ids: Sequence[int]) -> None:
    """Remove places and records that were last stored before a time."""
    replies = redis.pipeline([("SMEMBERS", _of_shard(shard, "cells")) for shard in range(SHARDS)])
    cursors: dict[tuple[Script, str], tuple[list[str], list[Argument]]] = {}
    for cell in (int(cell) for reply in replies for cell in reply):
        cursors[SWEEP_CELL, str(cell)] = cell_keys(cell, type_ids), [cell, before_us]
    for shard in range(SHARDS):
        key = _of_shard(shard, "placed")
        cursors[SWEEP_PLACED, key] = [key], [before_us]
    at = dict.fromkeys(cursors, "0")
    while at:
        todo = list(at)[:_MAX_SWEPT]
        calls = [
            Call(set_key[0], cursors[set_key][0], (*cursors[set_key][1], at[set_key], SWEEP_COUNT))
            for set_key in todo
        ]
        for set_key, cursor in zip(todo, redis.run_all(calls), strict=True):
            if cursor == "0":
                del at[set_key]
            else:
                at[set_key] = cursor


def search_near(
    area: Area, after: ShopDistance, count: int, charge: Charge = no_charge
) -> NearResult:
    """Return up to ``count`` shops of an area after ``after``. One round trip where the nearest
    cells have enough. Else one finds the cells that have shops, and the nearest of them are
    searched in at most two further trips, or in more until a shop is found; ``charge`` is called
    before each. Raises RedisDown, TooManyRequests."""
    left = cells.find_cells(area, after.distance)
    near: list[ShopDistance] = []
    build_due, complete_to, number = False, float("inf"), CELLS_PER_TRIP
    for trip in count_from(1):
        some, left = left[:number], left[number:]
        replies = redis.run_all([search_call(area, cell, after, count) for cell in some])
        for is_built, is_due, is_truncated, cell_complete_to, *rest in replies:
            build_due = build_due or is_due == 1
            if not is_built:
                return NearResult(None, build_due, truncated=False)
            pairs = iter(rest)
            near += [ShopDistance(int(d), int(s)) for s, d in zip(pairs, pairs, strict=True)]
            if is_truncated:
                complete_to = min(complete_to, cell_complete_to)
        certain = _find_certain(near, complete_to, left)
        if trip == 1 and left and len(certain) < count:
            charge(WIDE_SEARCH_TOKENS)
            sizes = _measure(left, area.type_id)
            left = [cell for cell in left if sizes[cell]]
            certain = _find_certain(near, complete_to, left)
        is_complete = len(certain) >= count or not left or complete_to <= left[0].nearest
        if is_complete or (certain and trip >= MAX_TRIPS):
            break
        charge(TRIP_TOKENS)
        number = _count_cells([sizes[cell] for cell in left], count)
    certain = certain[:count]
    truncated = len(certain) < count and (complete_to < float("inf") or bool(left))
    return NearResult(certain, build_due, truncated, is_wide=trip > 1)


def _find_certain(
    near: Iterable[ShopDistance], complete_to: float, left: Sequence[Cell]
) -> list[ShopDistance]:
    """Return the shops that no shop of the cells that are ``left`` precedes, nearest first."""
    bound = min(complete_to, left[0].nearest if left else float("inf"))
    return sorted(shop for shop in near if shop.distance <= bound)


def _measure(left: Sequence[Cell], type_id: int | None) -> dict[Cell, int]:
    """Return cell -> its number of shops. One round trip. Raises RedisDown."""
    sizes = redis.pipeline([("ZCARD", set_key(cell.number, type_id)) for cell in left])
    return dict(zip(left, sizes, strict=True))


def _count_cells(sizes: Sequence[int], count: int) -> int:
    """Return how many cells to search next for ``count`` shops, given the sizes of all."""
    total = accumulate(sizes[:MAX_CELLS_PER_TRIP])
    return max(CELLS_PER_TRIP, sum(size < 2 * count for size in total))


def search_call(area: Area, cell: Cell, after: ShopDistance, count: int) -> Call:
    """Return the search of one cell."""
    keys = meta_key(cell.number), set_key(cell.number, area.type_id)
    return Call(
        SEARCH_NEAR,
        keys,
        SearchArguments(
            x=repr(area.place.x),
            y=repr(area.place.y),
            radius_m=area.radius_m,
            after_distance=after.distance,
            after_shop=after.shop_id,
            max_found=count,
            max_cells=MAX_CELLS_COUNTED,
            max_shops=MAX_SHOPS_MEASURED,
            rebuild_after_ms=REBUILD_AFTER_MS,
            request_interval_ms=REQUEST_INTERVAL_MS,
            column=cell.column * CELL_SIDE,
            row=cell.row * CELL_SIDE,
            side=CELL_SIDE,
            first_score=cell.number * CELL_SIDE**2,
        ),
    )


def _split(items: Sequence[T]) -> list[Sequence[T]]:
    """Split ``items`` by MAX_SHOPS_PER_CALL; Redis serves other callers between the calls."""
    return [items[i : i + MAX_SHOPS_PER_CALL] for i in range(0, len(items), MAX_SHOPS_PER_CALL)]
