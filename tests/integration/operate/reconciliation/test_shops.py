"""Places and filters of shops and vouchers: damage in Redis is found by a cycle, and repaired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plaza.commerce.flash_sales import filter_build
from plaza.commerce.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.commerce.shops import cells, redis_store
from plaza.commerce.shops.model import FILTER, PLACES, Place, ShopJobStep
from plaza.infra.derived.id_filter import IdFilter
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.operate.reconciliation import declared, run_steps
from tests.support import sales
from tests.support.plaza import World
from tests.support.reconciliations import count_cost, findings_of, run
from tests.support.shop_api import BERLIN, FOOD, add_types, ask, build, insert, refresh

X, Y = BERLIN
SHOP, NEIGHBOUR, FAR, WITHOUT_PLACE, DELETED = 21, 22, 23, 24, 25
CELL = cells.cell_of(Place(X, Y))
OTHER_CELL = cells.cell_of(Place(-70.0, -33.0))
ALL, OF_TYPE = redis_store.set_key(CELL, None), redis_store.set_key(CELL, FOOD)
PLACED = redis_store.placed_key(SHOP)
VOUCHERS = 3


@pytest.fixture(autouse=True)
def world(plaza: World) -> World:
    """Five shops and three vouchers; places and filters are built."""
    add_types()
    insert(
        [
            (SHOP, FOOD, X, Y),
            (NEIGHBOUR, None, X + 0.0001, Y),
            (FAR, FOOD, -70.0, -33.0),
            (WITHOUT_PLACE, FOOD, None, None),
            (DELETED, FOOD, X, Y),
        ]
    )
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6) WHERE id = %s", (DELETED,))
    for _ in range(VOUCHERS):
        sales.offer(5)
    build(ShopJobStep(FILTER), ShopJobStep(PLACES))
    filter_build.build_filter()
    return plaza


def read_nearby() -> list[tuple[str, Any]]:
    """Return the shops near the middle, as readers get them."""
    items = ask("GET", f"/shops?x={X}&y={Y}").body["items"]
    of_type = ask("GET", f"/shops?x={X}&y={Y}&type={FOOD}").body["items"]
    return [(item["id"], item["distance_m"]) for item in [*items, *of_type]]


def read_denied() -> list[int]:
    """Return the ids that a filter denies although MySQL has them."""
    ids = [shop_id for (shop_id,) in mysql.fetch_all("SELECT id FROM shop")]
    vouchers = voucher_ids()
    denied = {*ids} - {*redis_store.SHOP_IDS.find_possible(ids)}
    return sorted(denied | ({*vouchers} - {*VOUCHER_IDS.find_possible(vouchers)}))


def voucher_ids() -> list[int]:
    return [voucher_id for (voucher_id,) in mysql.fetch_all("SELECT id FROM voucher ORDER BY id")]


def change_record(change: Callable[[list[str]], list[str]]) -> object:
    parts = redis.execute("HGET", PLACED, SHOP).split(";")
    return redis.execute("HSET", PLACED, SHOP, ";".join(change(parts)))


def empty(id_filter: IdFilter) -> None:
    """Clear the bits of a filter, but the one that says that it is whole."""
    bits = redis.execute("HGET", id_filter.keys.meta, "bits")
    redis.execute("UNLINK", id_filter.keys.filter)
    redis.execute("SETBIT", id_filter.keys.filter, bits, 1)


def add_moved() -> None:
    """Store the shop at another place, with the move of a process that is far ahead."""
    redis.execute("GEOADD", ALL, X + 0.01, Y, SHOP)
    redis.execute("HSET", redis_store.moves_key(CELL), SHOP, 2**52)


DAMAGES: dict[str, Callable[[], object]] = {
    "a shop is in no set": lambda: redis.execute("ZREM", ALL, SHOP),
    "a shop is not in the set of its type": lambda: redis.execute("ZREM", OF_TYPE, SHOP),
    "a shop is at another place": lambda: redis.execute("GEOADD", ALL, X + 0.01, Y, SHOP),
    "a shop of a type is at another place": lambda: redis.execute(
        "GEOADD", OF_TYPE, X, Y + 0.01, SHOP
    ),
    "a shop is in a cell that it left": lambda: (
        redis.execute("GEOADD", redis_store.set_key(OTHER_CELL, None), -70.0, -33.0, SHOP),
        change_record(lambda parts: [*parts[:2], f"{parts[2]},{OTHER_CELL}"]),
    ),
    "Redis has a later version": lambda: change_record(lambda parts: ["99", *parts[1:]]),
    "a shop is unknown": lambda: redis.execute("HDEL", PLACED, SHOP),
    "a record cannot be read": lambda: redis.execute("HSET", PLACED, SHOP, "what"),
    "a later move keeps another place": add_moved,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_of_a_place_is_found_and_readers_get_what_mysql_has(name: str, world: World) -> None:
    right = read_nearby()
    assert [shop for shop, _ in right] == ["21", "22", "21"]
    assert run(world).differing == 0
    DAMAGES[name]()
    report = run(world)
    assert findings_of(report) == {("list", "shop", f"shop:{SHOP}")}
    assert (report.repaired, report.is_resolved) == (1, True)
    assert read_nearby() == right
    assert run(world).differing == 0
    mysql.write("UPDATE shop SET version = version + 1, y = y + 0.02 WHERE id = %s", (SHOP,))
    refresh(SHOP)
    assert read_nearby() != right, "later changes are accepted"


def test_a_deleted_shop_that_is_still_there_is_removed(world: World) -> None:
    redis.execute("GEOADD", ALL, X, Y, DELETED)
    key = redis_store.placed_key(DELETED)
    version, move, _ = redis.execute("HGET", key, DELETED).split(";")
    redis.execute("HSET", key, DELETED, f"{version};{move};{CELL}")
    assert findings_of(run(world)) == {("list", "shop", f"shop:{DELETED}")}
    assert redis.execute("ZSCORE", ALL, DELETED) is None
    assert run(world).differing == 0


def test_ids_that_the_filter_of_shops_denies_are_found_and_added(world: World) -> None:
    assert (read_denied(), run(world).differing) == ([], 0)
    empty(redis_store.SHOP_IDS)
    shops = (5, SHOP, NEIGHBOUR, FAR, WITHOUT_PLACE, DELETED)
    assert read_denied() == sorted(shops)
    report = run(world)
    assert findings_of(report) == {("list", "shop", f"shop:{shop_id}") for shop_id in shops}
    assert report.is_resolved
    assert (read_denied(), run(world).differing) == ([], 0)


def test_ids_that_the_filter_of_vouchers_denies_are_found_and_added(world: World) -> None:
    empty(VOUCHER_IDS)
    assert read_denied() == voucher_ids()
    report = run(world)
    assert findings_of(report) == {("list", "voucher", f"voucher:{each}") for each in voucher_ids()}
    assert report.is_resolved
    assert (read_denied(), run(world).differing) == ([], 0)


def test_places_and_filters_that_redis_lost_are_no_difference(world: World) -> None:
    redis.execute("FLUSHALL")
    assert run(world).differing == 0


def test_a_shop_that_is_moved_between_both_looks_is_no_difference(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a change of MySQL that reaches Redis before the second look."""
    mysql.write("UPDATE shop SET version = version + 1, y = y + 0.02 WHERE id = %s", (SHOP,))
    recheck = run_steps.CHECKS["list"]

    def refresh_and_recheck(suspects: Any) -> Any:
        assert [suspect.subject.id for suspect in suspects] == [SHOP]
        refresh(SHOP)
        return recheck(suspects)

    monkeypatch.setitem(run_steps.CHECKS, "list", refresh_and_recheck)
    assert run(world).differing == 0


@pytest.mark.parametrize("per_step", [1, 2, 500])
def test_pages_of_any_size_compare_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, per_step: int
) -> None:
    monkeypatch.setattr(declared, "_LISTED_PER_STEP", per_step)
    empty(VOUCHER_IDS)
    redis.execute("ZREM", ALL, SHOP, NEIGHBOUR)
    report = run(world)
    assert {what for _, what, _ in findings_of(report)} == {"shop", "voucher"}
    assert (report.differing, report.is_resolved) == (2 + VOUCHERS, True)


def test_scores_are_those_of_redis() -> None:
    for place in (Place(X, Y), Place(-179.9, -80.0), Place(0.0, 0.0), Place(151.2, -33.87)):
        redis.execute("GEOADD", "{1}:place", repr(place.x), repr(place.y), "here")
        assert int(float(redis.execute("ZSCORE", "{1}:place", "here"))) == cells.score_of(place)


def test_more_shops_cost_no_more_round_trips_and_statements(world: World) -> None:
    few = count_cost(world)
    insert([(100 + n, FOOD, X + n / 1_000, Y) for n in range(60)])
    refresh(*range(100, 160))
    world.queues.drain()
    many = count_cost(world)
    nodes = len(redis.nodes())
    assert many[0] <= (few[0] + 4) * nodes
    assert many[1] <= few[1] + 2
