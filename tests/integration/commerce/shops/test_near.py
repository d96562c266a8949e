"""Shops nearby: distances and pages, equal from Redis and MySQL, during moves and losses."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from plaza.commerce.shops import cells, mysql_shops, redis_store
from plaza.commerce.shops.model import (
    LIST_START,
    MAX_NEARBY_SHOPS,
    PLACES,
    Area,
    Place,
    ShopDistance,
    ShopJobStep,
    ShopPlace,
)
from plaza.commerce.shops.queues import SHOPS
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.token_bucket import TokenBucket
from tests.integration.conftest import Away
from tests.support.call_log import record_call
from tests.support.content_api import counting_work
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.shop_api import (
    BERLIN,
    FOOD,
    NOODLES,
    SPA,
    add_types,
    ask,
    build,
    build_places,
    create,
    insert,
    refresh,
    write,
)
from tests.support.stores import explain

X, Y = BERLIN
NEAR = f"/shops?x={X}&y={Y}"
TYPES = [FOOD, SPA]


@pytest.fixture
def types(plaza: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("plaza.commerce.shops.nearby._fallback_budget", TokenBucket(1_000, 1_000))
    add_types()
    return plaza


def put(item: ShopPlace) -> set[int]:
    return redis_store.put_places([item], TYPES)


def find_placed(type_id: int | None) -> dict[str, list[tuple[str, str]]]:
    """Return shop -> its places in all cells."""
    results: dict[str, list[tuple[str, str]]] = {}
    for key in find_keys(f"*:shops:[0-9]*:{'all' if type_id is None else type_id}"):
        for shop_id in redis.execute("ZRANGE", key, 0, -1):
            results.setdefault(shop_id, []).extend(redis.execute("GEOPOS", key, shop_id))
    return results


def count_placed(type_id: int | None) -> int:
    return sum(map(len, find_placed(type_id).values()))


def around(
    count: int, radius_m: float, seed: int = 6, x: float = X, y: float = Y
) -> list[tuple[float, float]]:
    """Return points spread evenly over a disc."""
    rng = random.Random(seed)
    points = []
    for _ in range(count):
        distance, angle = radius_m * math.sqrt(rng.random()), rng.uniform(0, 2 * math.pi)
        east = distance * math.sin(angle) / (111_195 * math.cos(math.radians(y)))
        points.append((x + east, y + distance * math.cos(angle) / 111_195))
    return points


def ids(path: str) -> list[int]:
    """Return the shops of all pages of a list."""
    return [int(item["id"]) for item in items(path)]


def items(path: str) -> list[dict[str, Any]]:
    results, cursor = [], ""
    while True:
        reply = ask("GET", path + cursor)
        assert reply.status == 200, reply.body
        results += reply.body["items"]
        if reply.body["next"] is None:
            return results
        cursor = f"&cursor={reply.body['next']}"


# ---------------------------------------------------------------- searches


def test_the_nearest_shop_is_first_with_its_distance(types: World) -> None:
    build_places()
    shops = [create(name=f"{km} km", place={"x": X, "y": Y + km / 111.2}) for km in (3, 1, 2)]
    result = items(f"{NEAR}&radius=2500")
    assert [int(item["id"]) for item in result] == [shops[1], shops[2]]
    assert [item["name"] for item in result] == ["1 km", "2 km"]
    for item, km in zip(result, (1, 2), strict=True):
        assert item["distance_m"] == pytest.approx(km * 1_000, rel=0.005)
        assert (item["type_id"], item["place"]["x"]) == (str(FOOD), X)


def test_only_shops_of_the_type_are_found(types: World) -> None:
    build_places()
    food, spa, none = create(), create(type_id=str(SPA)), create(type_id=None)
    assert ids(f"{NEAR}&type={FOOD}") == [food]
    assert ids(f"{NEAR}&type={SPA}") == [spa]
    assert ids(NEAR) == sorted([food, spa, none])


def test_a_shop_without_a_place_is_not_found(types: World) -> None:
    insert([(5, FOOD, None, None), (6, FOOD, X, 89.0), (7, FOOD, 200.0, Y), (8, FOOD, X, Y)])
    assert ids(f"{NEAR}&radius=50000") == [8]
    build_places()
    assert ids(f"{NEAR}&radius=50000") == [8]
    refresh(5, 6, 7, 8)
    assert ids(f"{NEAR}&radius=50000") == [8]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (f"x={X}", "query.y"),
        (f"y={Y}", "query.x"),
        (f"x={X}&y=85.06", "query.y"),
        (f"x={X}&y=-85.06", "query.y"),
        (f"x=180.01&y={Y}", "query.x"),
        (f"x=nan&y={Y}", "query.x"),
        (f"x=inf&y={Y}", "query.x"),
        (f"x={X}&y={Y}&radius=0", "query.radius"),
        (f"x={X}&y={Y}&radius=50001", "query.radius"),
        (f"x={X}&y={Y}&type=food", "query.type"),
        (f"x={X}&y={Y}&cursor=abc", "cursor"),
        (f"x={X}&y={Y}&cursor=Wy0xLDVd", "cursor"),
        (f"x={X}&y={Y}&cursor={pack_cursor(450_000_000, 7, 20, 'A' * 22)}", "cursor"),
        (f"x={X}&y={Y}&limit=101", "query.limit"),
    ],
)
def test_an_invalid_query_is_a_400(types: World, query: str, field: str) -> None:
    refused = ask("GET", f"/shops?{query}")
    assert (refused.status, refused.slug) == (400, "invalid-request")
    assert refused.body["detail"].startswith(field), refused.body


def test_a_missing_type_is_a_404(types: World) -> None:
    refused = ask("GET", f"{NEAR}&type=3")
    assert (refused.status, refused.slug) == (404, "not-found")
    assert not find_keys("*shops:3:*"), "no set is built"


def test_a_cursor_of_another_query_is_refused(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(30, 3_000), 1)])
    build_places()
    cursor = ask("GET", f"{NEAR}&radius=4000&type={FOOD}&limit=10").body["next"]
    good = ask("GET", f"{NEAR}&radius=4000&type={FOOD}&limit=20&cursor={cursor}")
    assert len(good.body["items"]) == 20
    for other in (
        f"/shops?x={X}&y={Y + 0.001}&radius=4000&type={FOOD}",
        f"/shops?x={X + 0.001}&y={Y}&radius=4000&type={FOOD}",
        f"{NEAR}&radius=4001&type={FOOD}",
        f"{NEAR}&radius=4000",
        f"{NEAR}&radius=4000&type={SPA}",
    ):
        refused = ask("GET", f"{other}&cursor={cursor}")
        assert (refused.status, refused.slug) == (400, "invalid-request"), other


def test_a_cursor_with_changed_parts_is_refused(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(30, 3_000), 1)])
    build_places()
    parts = unpack_cursor(ask("GET", f"{NEAR}&limit=10").body["next"], (int, int, int, str))
    for index in range(3):
        forged = [part + 1 if i == index else part for i, part in enumerate(parts)]
        refused = ask("GET", f"{NEAR}&cursor={pack_cursor(*forged)}")
        assert (refused.status, refused.slug) == (400, "invalid-request"), forged


def test_shops_on_the_edges_of_the_map_are_found(types: World) -> None:
    build_places()
    for x, y in ((180, 85.05112878), (-180, -85.05112878), (0, 0)):
        shop_id = create(place={"x": x, "y": y})
        assert ids(f"/shops?x={x}&y={y}&radius=10") == [shop_id]


def test_a_search_crosses_the_date_line(types: World) -> None:
    insert([(5, FOOD, 179.99, 0.5), (6, FOOD, -179.99, 0.5), (7, FOOD, 179.0, 0.5)])
    for x in (179.995, -179.995):
        area = Area(Place(x, 0.5), 5_000, None)
        from_mysql = mysql_shops.find_near(area, LIST_START, 10)
        assert sorted(near.shop_id for near in from_mysql) == [5, 6]
        build_places()
        assert redis_store.search_near(area, LIST_START, 10).shops == from_mysql


# ---------------------------------------------------------------- pages


def test_pages_have_no_gaps_and_no_repeats(types: World) -> None:
    points = around(400, 5_000)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(points, 1)])
    insert([(1_000 + i, FOOD, X + 0.01, Y) for i in range(50)])  # all at one place
    expected = ids(f"{NEAR}&limit=100")
    assert sorted(expected) == sorted([*range(1, 401), *range(1_000, 1_050)])
    distances = [item["distance_m"] for item in items(f"{NEAR}&limit=100")]
    assert distances == sorted(distances)
    build_places()
    for limit in (7, 20, 100):
        assert ids(f"{NEAR}&limit={limit}") == expected, "Redis finds the shops of MySQL"
        assert ids(f"{NEAR}&limit={limit}&type={FOOD}") == expected


def test_redis_and_mysql_return_equal_distances(types: World) -> None:
    rng = random.Random(7)
    for _ in range(8):
        x, y = rng.uniform(-179, 179), rng.uniform(-84, 84)
        mysql.write("DELETE FROM shop")
        insert([(i, FOOD, *point) for i, point in enumerate(around(200, 30_000, x=x, y=y), 1)])
        redis.execute("FLUSHALL")
        build(ShopJobStep(PLACES))
        area = Area(Place(x, y), 25_000, None)
        from_redis = redis_store.search_near(area, LIST_START, 300).shops
        assert from_redis == mysql_shops.find_near(area, LIST_START, 300)
        assert from_redis
        assert len(from_redis) > 100
        after = from_redis[60]
        assert redis_store.search_near(area, after, 20).shops == from_redis[61:81]
        assert mysql_shops.find_near(area, after, 20) == from_redis[61:81]


def test_a_list_continues_in_mysql_after_redis_was_emptied(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(60, 3_000), 1)])
    build_places()
    whole = ids(f"{NEAR}&limit=100")
    first = ask("GET", f"{NEAR}&limit=25").body
    redis.execute("FLUSHALL")
    rest = ids(f"{NEAR}&limit=25&cursor={first['next']}")
    assert [int(item["id"]) for item in first["items"]] + rest == whole


def test_shops_that_do_not_move_are_listed_once_while_others_move(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(200, 3_000), 1)])
    build_places()
    rng, movers = random.Random(8), set(range(1, 21))
    results: list[int] = []
    cursor = ""
    while True:
        page = ask("GET", f"{NEAR}&limit=20{cursor}").body
        results += [int(item["id"]) for item in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
        for mover in rng.sample(sorted(movers), 3):
            x, y = around(1, 3_000, seed=rng.randrange(10**6))[0]
            write("PUT", f"/shops/{mover}", NOODLES | {"place": {"x": x, "y": y}})
    unmoved = [shop_id for shop_id in results if shop_id not in movers]
    assert sorted(unmoved) == list(range(21, 201))


@pytest.mark.parametrize("limit", [37, 100])
def test_a_list_ends_after_the_nearest_1000_shops(types: World, limit: int) -> None:
    points = around(MAX_NEARBY_SHOPS + 300, 2_000)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(points, 1)])
    for _ in range(2):  # from MySQL, then from Redis
        result = items(f"{NEAR}&type={FOOD}&limit={limit}")
        assert len(result) == len({item["id"] for item in result}) == MAX_NEARBY_SHOPS
        distances = [item["distance_m"] for item in result]
        assert distances == sorted(distances)
        build_places()


# ---------------------------------------------------------------- bounded work


def put_places(points: list[tuple[float, float]]) -> None:
    """Store shops 1, 2, ... in Redis only."""
    redis_store.begin_places("build")
    placed = [ShopPlace(i, 1, Place(x, y)) for i, (x, y) in enumerate(points, 1)]
    for start in range(0, len(placed), 5_000):
        redis_store.fill_places("build", placed[start : start + 5_000], TYPES, last=False)
    assert redis_store.fill_places("build", [], TYPES, last=True) == "FINISHED"


def test_a_distant_cluster_costs_as_many_cells_as_a_near_one(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given 20,000 shops 45 km away, all of which a search by radius would measure."""
    put_places(around(20_000, 5_000))
    area = Area(Place(X, Y + 50_000 / 111_195), 50_000, None)
    result = redis_store.search_near(area, LIST_START, 21)
    assert result.shops is not None
    assert len(result.shops) == 21
    assert not result.truncated
    monkeypatch.setattr(redis_store, "MAX_SHOPS_MEASURED", 200)
    monkeypatch.setattr(redis_store, "MAX_CELLS_COUNTED", 200)
    assert redis_store.search_near(area, LIST_START, 21) == result


def test_a_page_at_the_limit_of_measured_shops_is_short_and_the_list_continues(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(600, 5_000), 1)])
    build_places()
    whole = ids(f"{NEAR}&limit=100")
    monkeypatch.setattr(redis_store, "MAX_SHOPS_MEASURED", 120)
    assert len(ask("GET", f"{NEAR}&limit=100").body["items"]) < 100
    result = ids(f"{NEAR}&limit=100")
    assert result == whole[: len(result)]
    assert len(result) > 120, "the list continues after the short page"


def test_more_shops_at_one_point_than_the_limit_end_the_list(types: World) -> None:
    near = around(5, 100, y=Y + 0.01)
    put_places([*near, *[(X, Y)] * (redis_store.MAX_SHOPS_MEASURED + 1)])
    area = Area(Place(X, Y + 0.01), 5_000, None)
    result = redis_store.search_near(area, LIST_START, 101)
    assert result.truncated
    assert sorted(shop.shop_id for shop in result.shops or ()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("seed", range(6))
def test_a_search_finds_the_same_shops_as_a_full_scan(types: World, seed: int) -> None:
    """Given places at the edges of the map and the date line, and clusters of any density."""
    rng = random.Random(seed)
    x, y = rng.choice([-180.0, -179.98, 0.0, 13.4, 179.99, 180.0]), rng.uniform(-84.9, 84.9)
    points = []
    for _ in range(6):
        dx, dy = rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3)
        points += around(300, 10 ** rng.uniform(0, 4.5), rng.randrange(10**6), x + dx, y + dy)
    points = [((px + 180) % 360 - 180, max(-85.0, min(85.0, py))) for px, py in points]
    insert([(i, FOOD, *point) for i, point in enumerate(points, 1)])
    build(ShopJobStep(PLACES))
    area, after = Area(Place(x, y), 50_000, None), LIST_START
    for _ in range(4):
        result = redis_store.search_near(area, after, 60)
        assert result.shops
        assert result.shops == mysql_shops.find_near(area, after, 60)[: len(result.shops)]
        assert result.truncated or len(result.shops) == 60
        after = result.shops[-1]


def test_a_cached_page_takes_two_round_trips(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(100, 3_000), 1)])
    build_places()
    ask("GET", f"{NEAR}&type={FOOD}&limit=50")
    with counting_work() as work:
        assert len(ask("GET", f"{NEAR}&type={FOOD}&limit=50").body["items"]) == 50
    assert (work.statements, work.round_trips) == (0, 2)


def test_the_search_in_mysql_uses_an_index(types: World) -> None:
    points = around(3_000, 40_000)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(points, 1)])
    for type_id, index in ((None, "by_place"), (FOOD, "by_type_and_place")):
        with counting_work() as work:
            area = Area(Place(X, Y), 1_000, type_id)
            assert mysql_shops.find_near(area, LIST_START, 20)
        assert work.statements == 1
        assert explain_near(area) == ("range", index)


def explain_near(area: Area) -> tuple[str, str]:
    """Return the access type and the index of the innermost part of the statement."""
    statements: list[tuple[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            mysql, "fetch_all", lambda sql, args=(): record_call(statements, (sql, args), [])
        )
        mysql_shops.find_near(area, LIST_START, 20)
    step = next(step for step in explain(*statements[0]) if step["table"] == "shop")
    return step["type"], step["key"]


# ---------------------------------------------------------------- moves


def test_a_moved_shop_is_found_at_its_new_place(types: World) -> None:
    build_places()
    shop_id = create()
    write("PUT", f"/shops/{shop_id}", NOODLES | {"place": {"x": 0.0, "y": 0.0}})
    assert ids(NEAR) == ids(f"{NEAR}&type={FOOD}") == []
    assert ids("/shops?x=0&y=0") == ids(f"/shops?x=0&y=0&type={FOOD}") == [shop_id]


def test_a_shop_with_a_new_type_is_found_by_that_type(types: World) -> None:
    build_places()
    shop_id = create()
    write("PUT", f"/shops/{shop_id}", NOODLES | {"type_id": str(SPA)})
    assert ids(f"{NEAR}&type={FOOD}") == []
    assert ids(f"{NEAR}&type={SPA}") == ids(NEAR) == [shop_id]
    assert count_placed(FOOD) == 0


def test_a_shop_that_loses_its_place_or_is_deleted_is_not_found(types: World) -> None:
    build_places()
    lost, deleted = create(), create()
    write("PUT", f"/shops/{lost}", NOODLES | {"place": None})
    write("DELETE", f"/shops/{deleted}")
    assert ids(NEAR) == ids(f"{NEAR}&type={FOOD}") == []
    for type_id in (FOOD, None):
        assert count_placed(type_id) == 0


def test_the_newer_of_two_reordered_moves_stays(
    types: World,
) -> None:
    build_places()
    shop_id = create()
    for version in (3, 2):
        put(ShopPlace(shop_id, version, Place(float(version), 0.0), FOOD))
    [(x, _)] = find_placed(FOOD)[str(shop_id)]
    assert float(x) == pytest.approx(3.0, abs=1e-4)
    put(ShopPlace(shop_id, 5, None))
    put(ShopPlace(shop_id, 4, Place(1.0, 1.0), FOOD))
    assert count_placed(FOOD) == 0


def test_a_move_that_is_stored_late_is_refused(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a process that stops between its two round trips while the shop moves on."""
    build_places()
    run_all = redis.run_all
    stalled: list[Any] = []

    def stall(calls: Any, *rest: Any) -> Any:
        if calls and calls[0].script is redis_store.PLACE_SHOPS and not stalled:
            stalled.append((calls, *rest))
            return [0] * len(calls)
        return run_all(calls, *rest)

    monkeypatch.setattr(redis, "run_all", stall)
    put(ShopPlace(5, 1, Place(X, Y), FOOD))
    put(ShopPlace(5, 2, Place(0.0, 0.0), FOOD))
    run_all(*stalled[0])
    [(x, _)] = find_placed(FOOD)["5"]
    assert float(x) == pytest.approx(0.0, abs=1e-4)
    assert find_placed(None).keys() == {"5"}
    assert count_placed(None) == 1


def test_a_move_that_was_never_stored_is_repeated(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a process that ends between its two round trips, and the message again."""
    put(ShopPlace(5, 1, Place(X, Y), FOOD))
    with monkeypatch.context() as patch:
        run_all = redis.run_all
        patch.setattr(
            redis,
            "run_all",
            lambda calls, *rest: (
                run_all(calls[:0] or calls[:1], *rest)
                if calls[0].script is redis_store.MOVE_SHOPS
                else []
            ),
        )
        put(ShopPlace(5, 2, Place(0.0, 0.0), FOOD))
    assert float(find_placed(FOOD)["5"][0][0]) == pytest.approx(X, abs=1e-4)
    put(ShopPlace(5, 2, Place(0.0, 0.0), FOOD))
    assert [float(x) for x, _ in find_placed(FOOD)["5"]] == [pytest.approx(0.0, abs=1e-4)]


def test_moves_in_any_order_leave_each_shop_in_one_place(types: World) -> None:
    rng = random.Random(4)
    moves = []
    for shop_id in range(1, 30):
        for version in range(1, 8):
            place = Place(*around(1, 60_000, rng.randrange(10**6))[0]) if version % 3 else None
            moves.append(ShopPlace(shop_id, version, place, rng.choice([FOOD, SPA, None])))
    newest = {item.shop_id: item for item in sorted(moves, key=lambda item: item.version or 0)}
    moves += rng.choices(moves, k=60)
    rng.shuffle(moves)
    for item in moves:
        put(item)
    for type_id in (None, FOOD, SPA):
        result = find_placed(type_id)
        expected = {
            str(i) for i, item in newest.items() if item.place and type_id in (None, item.type_id)
        }
        assert result.keys() == expected
        for found_id, places in result.items():
            [(x, _)] = places
            place = newest[int(found_id)].place
            assert place
            assert float(x) == pytest.approx(place.x, abs=1e-4)


def test_a_build_removes_what_mysql_does_not_have(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given places whose records were lost with a node, and rows that no refresh removed."""
    monkeypatch.setattr(redis_store, "SWEEP_MARGIN_US", 0)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(40, 30_000), 1)])
    build_places()
    mysql.write("DELETE FROM shop WHERE id > 10")
    redis.pipeline([("DEL", redis_store.placed_key(shop_id)) for shop_id in range(1, 21)])
    write("PUT", "/shops/1", NOODLES | {"place": {"x": 0.0, "y": 0.0}})
    build_places()
    assert count_placed(None) == count_placed(FOOD) == 10
    assert find_placed(None).keys() == {str(i) for i in range(1, 11)}
    mysql.write("DELETE FROM shop")
    build_places()
    assert find_keys("*:shops:*:moves") == find_keys("*:shops:placed") == []


def test_a_shard_that_lost_its_data_is_searched_in_mysql(types: World) -> None:
    insert([(5, FOOD, X, Y)])
    build_places()
    types.queues.messages.clear()
    redis.execute("DEL", redis_store.meta_key(cells.cell_of(Place(X, Y))))
    redis.execute("DEL", redis_store.set_key(cells.cell_of(Place(X, Y)), FOOD))
    assert ids(f"{NEAR}&type={FOOD}") == [5]
    types.queues.drain()
    assert find_placed(FOOD).keys() == {"5"}


def remove_and_restore(shop_id: int) -> None:
    """Delete the row without the API, refresh Redis, and restore the same row."""
    stored = mysql.fetch_all(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND table_name = 'shop' AND COALESCE(generation_expression, '') = ''"
    )
    columns = ", ".join(name for (name,) in stored)
    mysql.write(f"CREATE TEMPORARY TABLE backup AS SELECT {columns} FROM shop")
    mysql.write("DELETE FROM shop")
    refresh(shop_id)
    assert ids(NEAR) == []
    mysql.write(f"INSERT INTO shop ({columns}) SELECT {columns} FROM backup")
    mysql.write("DROP TEMPORARY TABLE backup")


def expire_removal(shop_id: int) -> None:
    key = redis_store.placed_key(shop_id)
    version, rest = redis.execute("HGET", key, shop_id).split(";", 1)
    assert int(version) < 0
    redis.execute("HSET", key, shop_id, f"-1;{rest}")
    redis.execute("DEL", redis_store.page_key(shop_id))


def test_a_restored_row_is_found_again_after_a_minute(types: World) -> None:
    build_places()
    shop_id = create()
    types.queues.messages.clear()
    remove_and_restore(shop_id)
    refresh(shop_id)
    assert ids(NEAR) == [], "the row may have been read before its removal"
    expire_removal(shop_id)
    types.queues.drain()
    assert ids(NEAR) == ids(f"{NEAR}&type={FOOD}") == [shop_id]


def test_a_row_read_before_its_removal_is_refused(types: World) -> None:
    build_places()
    shop_id = create()
    mysql.write("DELETE FROM shop")
    refresh(shop_id)
    assert put(ShopPlace(shop_id, 9, Place(X, Y))) == {shop_id}
    assert count_placed(None) == 0


def test_a_removed_row_is_refreshed_once_more_only(types: World) -> None:
    build_places()
    shop_id = create()
    types.queues.drain()
    mysql.write("DELETE FROM shop")
    refresh(shop_id)
    assert len(types.queues.take("shops")) == 1
    expire_removal(shop_id)
    refresh(shop_id)
    assert types.queues.take("shops") == []


# ---------------------------------------------------------------- builds


def test_mysql_is_searched_until_redis_has_places_and_one_build_is_requested(
    types: World,
) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(50, 3_000), 1)])
    before = ids(f"{NEAR}&type={FOOD}&limit=100")
    for _ in range(20):
        assert ids(f"{NEAR}&type={FOOD}&limit=100") == before
    assert len(types.queues.messages["shops"]) == 1
    types.queues.drain()
    with counting_work() as work:
        assert ids(f"{NEAR}&type={FOOD}&limit=100") == before
    assert work.statements == 0
    redis.execute("FLUSHALL")
    assert ids(f"{NEAR}&type={FOOD}&limit=100") == before
    types.queues.drain()
    assert count_placed(FOOD) == 50


def test_without_places_searches_of_mysql_are_limited(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert([(5, FOOD, X, Y)])
    ask("GET", f"{NEAR}&type={FOOD}")
    bucket = TokenBucket(rate_per_s=20, burst=40, clock=lambda: 0.0)
    monkeypatch.setattr("plaza.commerce.shops.nearby._fallback_budget", bucket)
    replies = [ask("GET", NEAR) for _ in range(100)]
    assert [reply.status for reply in replies] == [200] * 40 + [503] * 60
    assert replies[-1].headers["retry-after"]


def test_without_redis_mysql_is_searched(types: World, redis_away: Away) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(30, 3_000), 1)])
    build_places()
    before = ids(f"{NEAR}&limit=100")
    with redis_away():
        assert ids(f"{NEAR}&limit=100") == before


def test_a_move_during_a_build_is_not_lost(types: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a shop that moves after the build read it and before Redis stores it."""
    shop_id = create()
    read_places = mysql_shops.read_places

    def read_then_move(*args: Any) -> list[ShopPlace]:
        placed = read_places(*args)
        write("PUT", f"/shops/{shop_id}", NOODLES | {"place": {"x": 0.0, "y": 0.0}})
        return placed

    with monkeypatch.context() as patch:
        patch.setattr(mysql_shops, "read_places", read_then_move)
        build(ShopJobStep(PLACES))
    assert ids(f"{NEAR}&type={FOOD}") == []
    assert ids(f"/shops?x=0&y=0&type={FOOD}") == [shop_id]


def test_a_deletion_during_a_build_is_not_lost(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop_id = create()
    read_places = mysql_shops.read_places

    def read_then_delete(*args: Any) -> list[ShopPlace]:
        placed = read_places(*args)
        write("DELETE", f"/shops/{shop_id}")
        return placed

    with monkeypatch.context() as patch:
        patch.setattr(mysql_shops, "read_places", read_then_delete)
        build(ShopJobStep(PLACES))
    assert count_placed(FOOD) == 0


def test_a_second_build_is_refused_while_one_runs(types: World) -> None:
    insert([(5, FOOD, X, Y)])
    assert redis_store.begin_places("one") == "BEGUN"
    assert redis_store.begin_places("one") == "BEGUN"
    assert redis_store.begin_places("two") == "BUSY"
    assert redis_store.fill_places("two", [], TYPES, True) == "LOST"
    shop_place = ShopPlace(5, 1, Place(X, Y), FOOD)
    assert redis_store.fill_places("one", [shop_place], TYPES, False) == "FILLED"
    assert redis_store.search_near(Area(Place(X, Y), 100, FOOD), LIST_START, 9).shops is None
    assert redis_store.fill_places("one", [], TYPES, True) == "FINISHED"
    assert redis_store.fill_places("one", [], TYPES, True) == "LOST"
    [near] = redis_store.search_near(Area(Place(X, Y), 100, FOOD), LIST_START, 9).shops or []
    assert near.shop_id == 5


def test_an_idle_build_is_replaced(types: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert redis_store.begin_places("one") == "BEGUN"
    monkeypatch.setattr(redis_store, "BUILD_TIMEOUT_MS", -1)
    assert redis_store.begin_places("two") == "BEGUN"
    assert redis_store.fill_places("one", [], TYPES, True) == "LOST"


def test_a_long_build_continues_through_the_queue(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.commerce.shops.jobs.PAGE", 10)
    monkeypatch.setattr("plaza.commerce.shops.jobs.PAGES_PER_STEP", 2)
    points = around(95, 3_000)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(points, 1)])
    types.queues.send("shops", SHOPS.encode(ShopJobStep(PLACES)))
    types.queues.drain()
    assert len(ids(f"{NEAR}&type={FOOD}&limit=100")) == 95
    assert count_placed(FOOD) == 95


def test_old_places_are_used_and_rebuilt(types: World, monkeypatch: pytest.MonkeyPatch) -> None:
    build_places()
    insert([(5, FOOD, X, Y)])  # without a refresh
    assert ids(NEAR) == []
    monkeypatch.setattr(redis_store, "REBUILD_AFTER_MS", -1)
    types.queues.messages.clear()
    assert [ids(NEAR) for _ in range(3)] == [[]] * 3
    assert len(types.queues.messages["shops"]) == 1
    types.queues.drain()
    assert ids(NEAR) == [5]


def test_a_shop_in_the_set_of_its_old_type_is_left_out(types: World) -> None:
    build_places()
    shop_id = create(type_id=str(SPA))
    key = redis_store.set_key(cells.cell_of(Place(X, Y)), FOOD)
    redis.execute("GEOADD", key, X, Y, shop_id)
    assert ids(f"{NEAR}&type={FOOD}") == []


def test_a_distance_is_rounded_to_decimetres() -> None:
    assert ShopDistance(12_345_678, 5).distance_m == 1234.6
