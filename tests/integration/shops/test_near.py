"""Near me: distances and pages, from Redis and from MySQL alike, through moves and losses."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from plaza.infra import mysql, redis
from plaza.infra.http import pack_cursor, unpack_cursor
from plaza.infra.token_bucket import TokenBucket
from plaza.shops import mysql_shops, redis_store
from plaza.shops.model import (
    LIST_START,
    MAX_NEARBY_SHOPS,
    PLACES,
    Area,
    Place,
    ShopDistance,
    ShopJobStep,
    ShopPlace,
)
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
    insert,
    made,
    refresh,
    write,
)
from tests.support.stores import explain

X, Y = BERLIN
NEAR = f"/shops?x={X}&y={Y}"


@pytest.fixture
def types(plaza: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("plaza.shops.nearby._fallback_budget", TokenBucket(1_000, 1_000))
    add_types()
    return plaza


def around(
    count: int, radius_m: float, seed: int = 6, x: float = X, y: float = Y
) -> list[tuple[float, float]]:
    """Points spread over a disc, so that the inner half of the radius has a quarter of them."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        far, way = radius_m * math.sqrt(chance.random()), chance.uniform(0, 2 * math.pi)
        east = far * math.sin(way) / (111_195 * math.cos(math.radians(y)))
        found.append((x + east, y + far * math.cos(way) / 111_195))
    return found


def ids(path: str) -> list[int]:
    """The shops of a list, followed to its end."""
    return [int(item["id"]) for item in items(path)]


def items(path: str) -> list[dict[str, Any]]:
    found, cursor = [], ""
    while True:
        reply = ask("GET", path + cursor)
        assert reply.status == 200, reply.body
        found += reply.body["items"]
        if reply.body["next"] is None:
            return found
        cursor = f"&cursor={reply.body['next']}"


# ---------------------------------------------------------------- what is near


def test_the_nearest_comes_first_with_its_distance(types: World) -> None:
    build_places()
    shops = [made(name=f"{km} km", place={"x": X, "y": Y + km / 111.2}) for km in (3, 1, 2)]
    found = items(f"{NEAR}&radius=2500")
    assert [int(item["id"]) for item in found] == [shops[1], shops[2]]
    assert [item["name"] for item in found] == ["1 km", "2 km"]
    for item, km in zip(found, (1, 2), strict=True):
        assert item["distance_m"] == pytest.approx(km * 1_000, rel=0.005)
        assert (item["type_id"], item["place"]["x"]) == (str(FOOD), X)


def test_only_those_of_the_type_are_found(types: World) -> None:
    build_places()
    food, spa, none = made(), made(type_id=str(SPA)), made(type_id=None)
    assert ids(f"{NEAR}&type={FOOD}") == [food]
    assert ids(f"{NEAR}&type={SPA}") == [spa]
    assert ids(NEAR) == sorted([food, spa, none])


def test_a_shop_without_a_place_is_near_nobody(types: World) -> None:
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
def test_what_is_nowhere_is_refused(types: World, query: str, field: str) -> None:
    refused = ask("GET", f"/shops?{query}")
    assert (refused.status, refused.slug) == (400, "invalid-request")
    assert refused.body["detail"].startswith(field), refused.body


def test_a_type_that_is_not_there_is_not_found(types: World) -> None:
    refused = ask("GET", f"{NEAR}&type=3")
    assert (refused.status, refused.slug) == (404, "not-found")
    assert not find_keys("*shops:3:*"), "nothing is built for it"


def test_a_cursor_is_refused_for_another_query(types: World) -> None:
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


def test_a_cursor_whose_parts_were_changed_is_refused(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(30, 3_000), 1)])
    build_places()
    parts = unpack_cursor(ask("GET", f"{NEAR}&limit=10").body["next"], (int, int, int, str))
    for place in range(3):
        forged = [part + 1 if i == place else part for i, part in enumerate(parts)]
        refused = ask("GET", f"{NEAR}&cursor={pack_cursor(*forged)}")
        assert (refused.status, refused.slug) == (400, "invalid-request"), forged


def test_the_edges_of_the_map_are_places(types: World) -> None:
    build_places()
    for x, y in ((180, 85.05112878), (-180, -85.05112878), (0, 0)):
        shop_id = made(place={"x": x, "y": y})
        assert ids(f"/shops?x={x}&y={y}&radius=10") == [shop_id]


def test_near_goes_on_across_the_date_line(types: World) -> None:
    insert([(5, FOOD, 179.99, 0.5), (6, FOOD, -179.99, 0.5), (7, FOOD, 179.0, 0.5)])
    for x in (179.995, -179.995):
        area = Area(Place(x, 0.5), 5_000, None)
        from_mysql = mysql_shops.find_near(area, LIST_START, 10)
        assert sorted(near.shop_id for near in from_mysql) == [5, 6]
        build_places()
        assert redis_store.search_near(area, LIST_START, 10).found == from_mysql


# ---------------------------------------------------------------- pages


def test_pages_have_no_repeats_and_leave_nobody_out(types: World) -> None:
    points = around(400, 5_000)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(points, 1)])
    insert([(1_000 + i, FOOD, X + 0.01, Y) for i in range(50)])  # a mall: all at one place
    whole = ids(f"{NEAR}&limit=100")
    assert sorted(whole) == sorted([*range(1, 401), *range(1_000, 1_050)])
    distances = [item["distance_m"] for item in items(f"{NEAR}&limit=100")]
    assert distances == sorted(distances)
    build_places()
    for limit in (7, 20, 100):
        assert ids(f"{NEAR}&limit={limit}") == whole, "Redis says what MySQL said"
        assert ids(f"{NEAR}&limit={limit}&type={FOOD}") == whole


def test_redis_and_mysql_measure_alike(types: World) -> None:
    chance = random.Random(7)
    for _ in range(8):
        x, y = chance.uniform(-179, 179), chance.uniform(-84, 84)
        mysql.write("DELETE FROM shop")
        insert([(i, FOOD, *point) for i, point in enumerate(around(200, 30_000, x=x, y=y), 1)])
        redis.execute("FLUSHALL")
        build(ShopJobStep(PLACES))
        area = Area(Place(x, y), 25_000, None)
        from_redis = redis_store.search_near(area, LIST_START, 300).found
        assert from_redis == mysql_shops.find_near(area, LIST_START, 300)
        assert from_redis
        assert len(from_redis) > 100
        behind = from_redis[60]
        assert redis_store.search_near(area, behind, 20).found == from_redis[61:81]
        assert mysql_shops.find_near(area, behind, 20) == from_redis[61:81]


def test_a_list_goes_on_in_mysql_when_redis_was_emptied_between_two_pages(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(60, 3_000), 1)])
    build_places()
    whole = ids(f"{NEAR}&limit=100")
    first = ask("GET", f"{NEAR}&limit=25").body
    redis.execute("FLUSHALL")
    rest = ids(f"{NEAR}&limit=25&cursor={first['next']}")
    assert [int(item["id"]) for item in first["items"]] + rest == whole


def test_who_stays_where_they_are_is_seen_once_while_others_move(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(200, 3_000), 1)])
    build_places()
    chance, movers = random.Random(8), set(range(1, 21))
    seen: list[int] = []
    cursor = ""
    while True:
        page = ask("GET", f"{NEAR}&limit=20{cursor}").body
        seen += [int(item["id"]) for item in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
        for mover in chance.sample(sorted(movers), 3):
            x, y = around(1, 3_000, seed=chance.randrange(10**6))[0]
            write("PUT", f"/shops/{mover}", NOODLES | {"place": {"x": x, "y": y}})
    stayed = [shop_id for shop_id in seen if shop_id not in movers]
    assert sorted(stayed) == list(range(21, 201))


@pytest.mark.parametrize("limit", [37, 100])
def test_a_list_ends_after_the_thousand_nearest(types: World, limit: int) -> None:
    points = around(MAX_NEARBY_SHOPS + 300, 2_000)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(points, 1)])
    for _ in range(2):  # from MySQL, then from Redis
        found = items(f"{NEAR}&type={FOOD}&limit={limit}")
        assert len(found) == len({item["id"] for item in found}) == MAX_NEARBY_SHOPS
        distances = [item["distance_m"] for item in found]
        assert distances == sorted(distances)
        build_places()


# ---------------------------------------------------------------- bounded work


def put_places(points: list[tuple[float, float]]) -> None:
    """Shops 1, 2, ... in Redis only."""
    redis_store.begin_places(None, "build")
    placed = [ShopPlace(i, 1, Place(x, y)) for i, (x, y) in enumerate(points, 1)]
    for start in range(0, len(placed), 5_000):
        redis_store.fill_places(None, "build", placed[start : start + 5_000], last=False)
    assert redis_store.fill_places(None, "build", [], last=True) == "FINISHED"


def test_a_city_far_away_costs_as_many_cells_as_one_around(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """45 km from 20,000 shops, where a search by radius would measure all of them."""
    put_places(around(20_000, 5_000))
    area = Area(Place(X, Y + 50_000 / 111_195), 50_000, None)
    look = redis_store.search_near(area, LIST_START, 21)
    assert look.found is not None
    assert len(look.found) == 21
    assert not look.truncated
    monkeypatch.setattr(redis_store, "MAX_SHOPS_MEASURED", 200)
    monkeypatch.setattr(redis_store, "MAX_CELLS_COUNTED", 200)
    assert redis_store.search_near(area, LIST_START, 21) == look


def test_a_page_that_would_cost_too_much_is_shorter_and_the_list_goes_on(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(600, 5_000), 1)])
    build_places()
    whole = ids(f"{NEAR}&limit=100")
    monkeypatch.setattr(redis_store, "MAX_SHOPS_MEASURED", 120)
    assert len(ask("GET", f"{NEAR}&limit=100").body["items"]) < 100
    found = ids(f"{NEAR}&limit=100")
    assert found == whole[: len(found)]
    assert len(found) > 120, "it went on behind the page that was cut"


def test_more_shops_at_one_point_than_may_be_measured_end_the_list(types: World) -> None:
    near = around(5, 100, y=Y + 0.01)
    put_places([*near, *[(X, Y)] * (redis_store.MAX_SHOPS_MEASURED + 1)])
    area = Area(Place(X, Y + 0.01), 5_000, None)
    look = redis_store.search_near(area, LIST_START, 101)
    assert look.truncated
    assert sorted(found.shop_id for found in look.found or ()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("seed", range(6))
def test_a_search_finds_what_looking_at_every_shop_finds(types: World, seed: int) -> None:
    """Around the poles' ends of the map, the date line, and clusters of any density."""
    chance = random.Random(seed)
    x, y = chance.choice([-180.0, -179.98, 0.0, 13.4, 179.99, 180.0]), chance.uniform(-84.9, 84.9)
    points = []
    for _ in range(6):
        way, far = chance.uniform(-0.3, 0.3), chance.uniform(-0.3, 0.3)
        points += around(
            300, 10 ** chance.uniform(0, 4.5), chance.randrange(10**6), x + way, y + far
        )
    points = [((px + 180) % 360 - 180, max(-85.0, min(85.0, py))) for px, py in points]
    insert([(i, FOOD, *point) for i, point in enumerate(points, 1)])
    build(ShopJobStep(PLACES))
    area, after = Area(Place(x, y), 50_000, None), LIST_START
    for _ in range(4):
        look = redis_store.search_near(area, after, 60)
        assert look.found
        assert look.found == mysql_shops.find_near(area, after, 60)[: len(look.found)]
        assert look.truncated or len(look.found) == 60
        after = look.found[-1]


def test_a_page_that_is_warm_costs_two_round_trips(types: World) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(100, 3_000), 1)])
    build_places()
    ask("GET", f"{NEAR}&type={FOOD}&limit=50")
    with counting_work() as work:
        assert len(ask("GET", f"{NEAR}&type={FOOD}&limit=50").body["items"]) == 50
    assert (work.statements, work.round_trips) == (0, 2)


def test_the_statement_reads_an_index(types: World) -> None:
    rng = around(3_000, 40_000)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(rng, 1)])
    for type_id, index in ((None, "by_place"), (FOOD, "by_type_and_place")):
        with counting_work() as work:
            area = Area(Place(X, Y), 1_000, type_id)
            assert mysql_shops.find_near(area, LIST_START, 20)
        assert work.statements == 1
        assert explain_near(area) == ("range", index)


def explain_near(area: Area) -> tuple[str, str]:
    """How the innermost part of the statement reads, and by which index."""
    asked: list[tuple[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mysql, "fetch_all", lambda sql, args=(): record_call(asked, (sql, args), []))
        mysql_shops.find_near(area, LIST_START, 20)
    step = next(step for step in explain(*asked[0]) if step["table"] == "shop")
    return step["type"], step["key"]


# ---------------------------------------------------------------- moves


def test_a_shop_that_moves_is_where_it_is(types: World) -> None:
    build_places()
    shop_id = made()
    write("PUT", f"/shops/{shop_id}", NOODLES | {"place": {"x": 0.0, "y": 0.0}})
    assert ids(NEAR) == ids(f"{NEAR}&type={FOOD}") == []
    assert ids("/shops?x=0&y=0") == ids(f"/shops?x=0&y=0&type={FOOD}") == [shop_id]


def test_a_shop_that_gets_another_type_is_of_that(types: World) -> None:
    build_places()
    shop_id = made()
    write("PUT", f"/shops/{shop_id}", NOODLES | {"type_id": str(SPA)})
    assert ids(f"{NEAR}&type={FOOD}") == []
    assert ids(f"{NEAR}&type={SPA}") == ids(NEAR) == [shop_id]
    assert redis.execute("ZCARD", redis_store.place_keys(FOOD).places) == 0


def test_a_shop_that_loses_its_place_or_is_deleted_is_near_nobody(types: World) -> None:
    build_places()
    lost, deleted = made(), made()
    write("PUT", f"/shops/{lost}", NOODLES | {"place": None})
    write("DELETE", f"/shops/{deleted}")
    assert ids(NEAR) == ids(f"{NEAR}&type={FOOD}") == []
    for type_id in (FOOD, None):
        assert redis.execute("ZCARD", redis_store.place_keys(type_id).places) == 0


def test_of_two_moves_the_later_counts_in_whatever_order_redis_hears_of_them(
    types: World,
) -> None:
    build_places()
    shop_id = made()
    for version in (3, 2):
        redis_store.put_places({FOOD: [ShopPlace(shop_id, version, Place(float(version), 0.0))]})
    [(x, _)] = redis.execute("GEOPOS", redis_store.place_keys(FOOD).places, shop_id)
    assert float(x) == pytest.approx(3.0, abs=1e-4)
    redis_store.put_places({FOOD: [ShopPlace(shop_id, 5, None)]})
    redis_store.put_places({FOOD: [ShopPlace(shop_id, 4, Place(1.0, 1.0))]})
    assert redis.execute("ZCARD", redis_store.place_keys(FOOD).places) == 0


def take_out_and_restore(shop_id: int) -> None:
    """The row is deleted past the API, Redis is told, and a backup brings the same row back."""
    mysql.write("CREATE TEMPORARY TABLE backup AS SELECT * FROM shop")
    mysql.write("DELETE FROM shop")
    refresh(shop_id)
    assert ids(NEAR) == []
    mysql.write("INSERT INTO shop SELECT * FROM backup")
    mysql.write("DROP TEMPORARY TABLE backup")


def let_time_pass_since_the_row_was_taken_out(shop_id: int) -> None:
    for type_id in (FOOD, None):
        key = redis_store.place_keys(type_id).versions
        assert int(redis.execute("HGET", key, shop_id)) < 0
        redis.execute("HSET", key, shop_id, -1)
    redis.execute("DEL", redis_store.page_key(shop_id))


def test_a_row_that_comes_back_is_near_again_after_a_minute(types: World) -> None:
    build_places()
    shop_id = made()
    types.queues.messages.clear()
    take_out_and_restore(shop_id)
    refresh(shop_id)
    assert ids(NEAR) == [], "it may be what was read before the row was taken out"
    let_time_pass_since_the_row_was_taken_out(shop_id)
    types.queues.drain()
    assert ids(NEAR) == ids(f"{NEAR}&type={FOOD}") == [shop_id]


def test_a_row_that_was_read_before_it_was_taken_out_does_not_bring_it_back(types: World) -> None:
    build_places()
    shop_id = made()
    mysql.write("DELETE FROM shop")
    refresh(shop_id)
    assert redis_store.put_places({None: [ShopPlace(shop_id, 9, Place(X, Y))]}) == {shop_id}
    assert redis.execute("ZCARD", redis_store.place_keys(None).places) == 0


def test_a_row_that_stays_away_is_looked_at_once_more_and_no_further(types: World) -> None:
    build_places()
    shop_id = made()
    types.queues.drain()
    mysql.write("DELETE FROM shop")
    refresh(shop_id)
    assert len(types.queues.take("shops")) == 1
    let_time_pass_since_the_row_was_taken_out(shop_id)
    refresh(shop_id)
    assert types.queues.take("shops") == []


# ---------------------------------------------------------------- a Redis that was emptied


def test_mysql_answers_until_redis_has_the_places_and_one_of_all_has_them_built(
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
    assert redis.execute("ZCARD", redis_store.place_keys(FOOD).places) == 50


def test_while_there_are_no_places_mysql_is_not_asked_by_all(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert([(5, FOOD, X, Y)])
    ask("GET", f"{NEAR}&type={FOOD}")
    bucket = TokenBucket(rate_per_s=20, burst=40, clock=lambda: 0.0)
    monkeypatch.setattr("plaza.shops.nearby._fallback_budget", bucket)
    replies = [ask("GET", NEAR) for _ in range(100)]
    assert [reply.status for reply in replies] == [200] * 40 + [503] * 60
    assert replies[-1].headers["retry-after"]


def test_without_redis_near_is_told_by_mysql(types: World, redis_away: Away) -> None:
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(around(30, 3_000), 1)])
    build_places()
    before = ids(f"{NEAR}&limit=100")
    with redis_away():
        assert ids(f"{NEAR}&limit=100") == before


def test_a_move_during_the_build_is_not_lost(types: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page was read, then the shop moved, then the page came to Redis."""
    shop_id = made()
    read_places = mysql_shops.read_places

    def read_then_move(*args: Any) -> list[ShopPlace]:
        placed = read_places(*args)
        write("PUT", f"/shops/{shop_id}", NOODLES | {"place": {"x": 0.0, "y": 0.0}})
        return placed

    with monkeypatch.context() as patch:
        patch.setattr(mysql_shops, "read_places", read_then_move)
        build(ShopJobStep(PLACES, FOOD))
    assert ids(f"{NEAR}&type={FOOD}") == []
    assert ids(f"/shops?x=0&y=0&type={FOOD}") == [shop_id]


def test_a_deletion_during_the_build_is_not_lost(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop_id = made()
    read_places = mysql_shops.read_places

    def read_then_delete(*args: Any) -> list[ShopPlace]:
        placed = read_places(*args)
        write("DELETE", f"/shops/{shop_id}")
        return placed

    with monkeypatch.context() as patch:
        patch.setattr(mysql_shops, "read_places", read_then_delete)
        build(ShopJobStep(PLACES, FOOD))
    assert redis.execute("ZCARD", redis_store.place_keys(FOOD).places) == 0


def test_two_builds_do_not_disturb_each_other(types: World) -> None:
    insert([(5, FOOD, X, Y)])
    assert redis_store.begin_places(FOOD, "one") == "BEGUN"
    assert redis_store.begin_places(FOOD, "one") == "BEGUN"
    assert redis_store.begin_places(FOOD, "two") == "BUSY"
    assert redis_store.fill_places(FOOD, "two", [], True) == "LOST"
    assert redis_store.fill_places(FOOD, "one", [ShopPlace(5, 1, Place(X, Y))], False) == "FILLED"
    assert redis_store.search_near(Area(Place(X, Y), 100, FOOD), LIST_START, 9).found is None
    assert redis_store.fill_places(FOOD, "one", [], True) == "FINISHED"
    assert redis_store.fill_places(FOOD, "one", [], True) == "LOST"
    [near] = redis_store.search_near(Area(Place(X, Y), 100, FOOD), LIST_START, 9).found or []
    assert near.shop_id == 5


def test_a_build_that_stopped_makes_way_for_another(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert redis_store.begin_places(FOOD, "one") == "BEGUN"
    monkeypatch.setattr(redis_store, "BUILD_TIMEOUT_MS", -1)
    assert redis_store.begin_places(FOOD, "two") == "BEGUN"
    assert redis_store.fill_places(FOOD, "one", [], True) == "LOST"


def test_a_long_build_goes_on_through_the_queue(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.shops.jobs.PAGE", 10)
    monkeypatch.setattr("plaza.shops.jobs.PAGES_PER_STEP", 2)
    points = around(95, 3_000)
    insert([(i, FOOD, x, y) for i, (x, y) in enumerate(points, 1)])
    types.queues.send("shops", ShopJobStep(PLACES, FOOD).to_json())
    types.queues.drain()
    assert len(ids(f"{NEAR}&type={FOOD}&limit=100")) == 95
    assert redis.execute("ZCARD", redis_store.place_keys(FOOD).places) == 95


def test_places_that_are_old_are_used_and_built_again(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_places()
    insert([(5, FOOD, X, Y)])  # and nobody said so
    assert ids(NEAR) == []
    monkeypatch.setattr(redis_store, "REBUILD_AFTER_MS", -1)
    types.queues.messages.clear()
    assert [ids(NEAR) for _ in range(3)] == [[]] * 3
    assert len(types.queues.messages["shops"]) == 1
    types.queues.drain()
    assert ids(NEAR) == [5]


def test_a_shop_of_another_type_that_is_still_listed_is_left_out(types: World) -> None:
    build_places()
    shop_id = made(type_id=str(SPA))
    redis_store.put_places({FOOD: [ShopPlace(shop_id, 1, Place(X, Y))]})
    assert ids(f"{NEAR}&type={FOOD}") == []


def test_a_distance_is_told_to_the_decimetre() -> None:
    assert ShopDistance(12_345_678, 5).distance_m == 1234.6
