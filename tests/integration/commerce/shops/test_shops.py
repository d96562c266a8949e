"""The routes of shops: permissions, reads, costs, unavailable stores."""

from __future__ import annotations

import random
import re

import pytest

from plaza.commerce.shops import mysql_shops, queries, redis_store
from plaza.commerce.shops import refresh as shops_refresh
from plaza.commerce.shops.model import FILTER, REMOVED_VERSION, SHOP, ShopJobStep, ShopMissing
from plaza.infra.derived import cache
from plaza.infra.mysql import mysql
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import locks, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from tests.integration.conftest import Away
from tests.support.content_api import as_another_process, counting_work
from tests.support.failures import Killed, failing
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
    make_stale,
    page,
    refresh,
    write,
)


@pytest.fixture
def types(plaza: World) -> World:
    add_types()
    return plaza


# ---------------------------------------------------------------- reads


def test_a_created_shop_is_read_back(types: World) -> None:
    shop_id = create()
    reply = ask("GET", f"/shops/{shop_id}", user=None)
    assert reply.status == 200
    assert {name: reply.body[name] for name in NOODLES} == NOODLES
    assert reply.body["id"] == str(shop_id)
    assert reply.body["created_at"] == reply.body["updated_at"]


def test_a_shop_needs_only_a_name(types: World) -> None:
    insert([(5, None, None, None)])
    body = ask("GET", "/shops/5").body
    assert (body["name"], body["type_id"], body["place"], body["images"]) == (
        "shop 5",
        None,
        None,
        [],
    )


def test_types_are_listed_by_sort(types: World) -> None:
    reply = ask("GET", "/shop-types")
    assert [(items["id"], items["name"]) for items in reply.body["items"]] == [
        ("2", "Spa"),
        ("1", "Food"),
    ]
    assert ask("GET", "/shop-types", user=None).body == reply.body
    with counting_work() as work:
        ask("GET", "/shop-types")
    assert (work.statements, work.round_trips) == (0, 1)


def test_an_empty_list_of_types_is_valid(plaza: World) -> None:
    assert ask("GET", "/shop-types").body == {"items": [], "next": None}


def test_a_cached_shop_and_its_score_take_one_round_trip_and_no_statement(
    types: World,
) -> None:
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")
    with counting_work() as work:
        assert ask("GET", f"/shops/{shop_id}").status == 200
    assert (work.statements, work.round_trips) == (0, 1)


def test_an_uncached_shop_and_its_score_take_a_statement_each(types: World) -> None:
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")  # the first reader creates the counter
    types.queues.drain()
    redis.execute("FLUSHALL")
    as_another_process()
    with counting_work() as work:
        ask("GET", f"/shops/{shop_id}")
    assert work.statements == 2


@pytest.mark.parametrize("shop_id", ["4711", "abc", "0", "9223372036854775808"])
def test_a_missing_shop_is_a_404(types: World, shop_id: str) -> None:
    for method, body in (("GET", None), ("PUT", NOODLES), ("DELETE", None)):
        reply = write(method, f"/shops/{shop_id}", body)
        assert (reply.status, reply.slug) == (404, "not-found"), method


# ---------------------------------------------------------------- writes


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", "/shops", NOODLES), ("PUT", "/shops/5", NOODLES), ("DELETE", "/shops/5", None)],
)
def test_only_admins_write(types: World, method: str, path: str, body: object) -> None:
    insert([(5, FOOD, None, None)])
    refused = ask(method, path, body)
    assert (refused.status, refused.slug) == (403, "forbidden")
    refused = ask(method, path, body, user=None)
    assert (refused.status, refused.slug) == (401, "unauthenticated")
    assert mysql.fetch_all("SELECT id, name, version FROM shop") == [(5, "shop 5", 1)]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "body.name"),
        ({"name": "a\nb"}, "body.name"),
        ({"name": "x" * 201}, "body.name"),
        ({"type_id": "3"}, "body.type_id"),
        ({"type_id": 1}, "body.type_id"),
        ({"type_id": "9" * 19}, "body.type_id"),
        ({"place": {"x": 13.4}}, "body.place.y"),
        ({"place": {"y": 52.5}}, "body.place.x"),
        ({"place": {"x": 0, "y": 85.06}}, "body.place.y"),
        ({"place": {"x": 0, "y": -90}}, "body.place.y"),
        ({"place": {"x": 180.5, "y": 0}}, "body.place.x"),
        ({"place": {"x": "13.4", "y": 0}}, "body.place.x"),
        ({"place": {"x": 0, "y": 0, "z": 0}}, "body.place.z"),
        ({"x": 13.4, "y": 52.5}, "body.x"),
        ({"avg_price_cents": 14.5}, "body.avg_price_cents"),
        ({"avg_price_cents": True}, "body.avg_price_cents"),
        ({"avg_price_cents": "14"}, "body.avg_price_cents"),
        ({"images": ["http://pics.example/1.jpg"]}, "body.images.0"),
        ({"images": NOODLES["images"] * 10}, "body.images"),  # type: ignore[operator]
        ({"avg_price_cents": -1}, "body.avg_price_cents"),
        ({"address": "x" * 256}, "body.address"),
        ({"version": 7}, "body.version"),
    ],
)
def test_an_invalid_shop_is_a_400(types: World, changes: dict[str, object], field: str) -> None:
    insert([(5, FOOD, None, None)])
    for method, path in (("POST", "/shops"), ("PUT", "/shops/5")):
        refused = write(method, path, NOODLES | changes)
        assert (refused.status, refused.slug) == (400, "invalid-request")
        assert refused.body["detail"].startswith(field), refused.body
    assert mysql.fetch_all("SELECT id, version FROM shop") == [(5, 1)]


def test_an_integral_float_is_accepted(types: World) -> None:
    assert (
        write("POST", "/shops", NOODLES | {"avg_price_cents": 14.0}).body["avg_price_cents"] == 14
    )


def test_nan_and_infinity_are_refused(types: World) -> None:
    refused = write("POST", "/shops", '{"name": "x", "place": {"x": NaN, "y": Infinity}}')
    assert (refused.status, refused.slug) == (400, "invalid-request")


# ---------------------------------------------------------------- writes and the cache


def test_a_change_is_read_at_once(types: World) -> None:
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")
    changed = write("PUT", f"/shops/{shop_id}", {"name": "Soup"})
    assert changed.status == 200
    assert page(shop_id) is None
    body = ask("GET", f"/shops/{shop_id}").body
    assert body == changed.body | {"reviews": 0, "score_total": 0, "average_score": None}
    assert (body["name"], body["type_id"], body["place"], body["images"]) == (
        "Soup",
        None,
        None,
        [],
    )
    assert body["updated_at"] > body["created_at"]


def test_a_late_reader_does_not_restore_an_old_page(types: World) -> None:
    shop_id = create()
    old = mysql_shops.read([shop_id])
    write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup"})
    key = redis_store.page_key(shop_id)
    entry = queries.entry_of(old[shop_id])
    assert cache.store_all(cache.STALE_WHILE_REBUILDING, {key: entry}, SHOP, create=True) == [False]
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"


def test_a_restored_old_page_is_dropped_after_1_s(types: World) -> None:
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")
    old = redis.execute("HGETALL", redis_store.page_key(shop_id))
    write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup"})
    pairs = old.items() if isinstance(old, dict) else zip(old[::2], old[1::2], strict=True)
    for name, value in pairs:  # a Redis that lost the fence, and a reader with old data
        redis.execute("HSET", redis_store.page_key(shop_id), name, value)
    assert ask("GET", f"/shops/{shop_id}").body["name"] == NOODLES["name"]
    types.queues.messages.pop("shops")  # the second drop is enough
    types.queues.drain()
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"


def test_a_write_sends_an_announcement_before_and_a_second_drop_after(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "plaza.infra.queues.sqs.send", lambda queue, body, delay_s=0: order.append((queue, delay_s))
    )
    drop_all = cache.drop_all
    monkeypatch.setattr(cache, "drop_all", lambda versions: order.append(("dropped", 0)))
    shop_id = create()
    assert order == [("shops", 15), ("dropped", 0), ("drops", 1)]
    monkeypatch.setattr(cache, "drop_all", drop_all)
    order.clear()
    write("DELETE", f"/shops/{shop_id}")
    assert order == [("shops", 15), ("drops", 1)]


@pytest.mark.parametrize(
    "dies_at", ["plaza.infra.derived.cache.drop_all", "plaza.infra.derived.cache.schedule_drop"]
)
def test_the_announcement_projects_a_write_that_crashed_after_its_commit(
    types: World, monkeypatch: pytest.MonkeyPatch, dies_at: str
) -> None:
    build_places()
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")
    types.queues.messages.clear()

    with monkeypatch.context() as patch:
        patch.setattr(dies_at, failing(Killed))
        with pytest.raises(Killed):
            write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup", "type_id": str(SPA)})
    types.queues.drain()
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"
    near = f"/shops?x={BERLIN[0]}&y={BERLIN[1]}"
    assert ask("GET", f"{near}&type={FOOD}").body["items"] == []
    assert [items["id"] for items in ask("GET", f"{near}&type={SPA}").body["items"]] == [
        str(shop_id)
    ]


def test_a_write_succeeds_without_redis(
    types: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")

    with monkeypatch.context() as patch:
        patch.setattr("plaza.infra.derived.projections.drop_all", failing(RedisDown("by the test")))
        changed = write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup"})
        assert changed.status == 200
        assert "projection_delayed" in capsys.readouterr().out
        for body in types.queues.take("drops"):
            with pytest.raises(RedisDown):  # so that SQS delivers it again
                cache.drop_again([cache.DROPS.decode(str(body))])
            types.queues.send("drops", body)
    types.queues.drain()
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"


def test_a_write_succeeds_without_the_queue(
    types: World, capsys: pytest.CaptureFixture[str]
) -> None:
    types.queues.away = True
    shop_id = create()
    assert ask("GET", f"/shops/{shop_id}").status == 200
    logs = capsys.readouterr().out
    assert {"drops", "shops"} <= set(re.findall(r'"message_unsent".*"queue":"(\w+)"', logs))


def test_a_deleted_shop_is_a_410(types: World) -> None:
    build_places()
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")
    assert write("DELETE", f"/shops/{shop_id}").status == 204
    for _ in range(2):  # from MySQL, then from Redis
        for method, body in (("GET", None), ("PUT", NOODLES), ("DELETE", None)):
            reply = write(method, f"/shops/{shop_id}", body)
            assert (reply.status, reply.slug) == (410, "gone"), method
        types.queues.drain()
    near = ask("GET", f"/shops?x={BERLIN[0]}&y={BERLIN[1]}")
    assert near.body["items"] == []


# ---------------------------------------------------------------- stale pages


def test_a_stale_page_is_shown_and_refreshed_once(types: World) -> None:
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")
    types.queues.drain()
    mysql.write("UPDATE shop SET name = 'Soup' WHERE id = %s", (shop_id,))  # without a refresh
    make_stale(shop_id)
    with counting_work() as work:
        names = [ask("GET", f"/shops/{shop_id}").body["name"] for _ in range(20)]
    assert names == [NOODLES["name"]] * 20
    assert work.statements == 0
    assert len(types.queues.messages["shops"]) == 1
    with counting_work() as work:
        refresh(shop_id)
    assert work.statements == 2
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"


def test_a_stale_page_is_shown_without_mysql_and_the_queue(types: World, mysql_away: Away) -> None:
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")
    make_stale(shop_id)
    types.queues.away = True
    with mysql_away():
        assert ask("GET", f"/shops/{shop_id}").status == 200
        assert ask("GET", "/shops/4711").status == 503


# ---------------------------------------------------------------- missing shops


def test_10_000_random_ids_take_at_most_20_statements(types: World) -> None:
    insert([(i, FOOD, None, None) for i in range(1, 10_001)])
    ask("GET", "/shops/1")
    types.queues.drain()
    rng = random.Random(6)
    missing_ids = [rng.randrange(10_001, 2**63) for _ in range(10_000)]
    with counting_work() as work:
        for shop_id in missing_ids:
            with pytest.raises(ShopMissing):
                queries.read(shop_id)
    print(f"10,000 random ids: {work.statements} statements")
    assert work.statements <= 20
    assert all(queries.read(i).name == f"shop {i}" for i in (1, 5_000, 10_000))


def test_the_absence_of_a_shop_that_passes_the_filter_is_cached(types: World) -> None:
    build(ShopJobStep(FILTER))
    redis_store.SHOP_IDS.add([4711])
    with counting_work() as work:
        assert [ask("GET", "/shops/4711").status for _ in range(50)] == [404] * 50
    assert work.statements == 1
    insert([(4711, FOOD, None, None)])
    refresh(4711)
    assert ask("GET", "/shops/4711").status == 200


def test_a_late_reader_does_not_restore_a_removed_row(
    types: World,
) -> None:
    shop_id = create()
    old = mysql_shops.read([shop_id])[shop_id]
    mysql.write("DELETE FROM shop")
    refresh(shop_id)
    key = redis_store.page_key(shop_id)
    entry = queries.entry_of(old)
    assert cache.store_all(cache.STALE_WHILE_REBUILDING, {key: entry}, SHOP, create=True) == [False]
    assert redis.execute("HGET", key, "version") == str(REMOVED_VERSION)
    assert ask("GET", f"/shops/{shop_id}").status == 404


# ---------------------------------------------------------------- unavailable stores


def test_without_redis_reads_of_mysql_are_limited_and_the_rest_get_503(
    types: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop_id = create()
    ask("GET", f"/shops/{shop_id}")  # the first reader creates the counter
    at_s = 1_000.0
    bucket = TokenBucket(rate_per_s=20, burst=40, clock=lambda: at_s)
    monkeypatch.setattr("plaza.commerce.shops.queries._fallback_budget", bucket)
    with redis_away():
        with counting_work() as work:
            replies = [ask("GET", f"/shops/{shop_id}") for _ in range(500)]
        statuses = [reply.status for reply in replies]
        assert (statuses.count(200), statuses.count(503)) == (40, 460)
        assert work.statements == 2 * 40, "the shop and its score"
        assert int(replies[-1].headers["retry-after"]) >= 1
        at_s += 1
        assert [ask("GET", f"/shops/{shop_id}").status for _ in range(30)].count(200) == 20
        at_s += 1
        for path in ("/shop-types", "/shops?x=13.4&y=52.52", "/shops/4711"):
            assert ask("GET", path).status in (200, 404)
        assert write("POST", "/shops", NOODLES).status in (201, 503)
    assert ask("GET", f"/shops/{shop_id}").status == 200


def test_a_reader_that_waits_for_the_lock_too_long_reads_mysql(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop_id = create()
    monkeypatch.setattr(cache, "WAIT_S", 0.01)
    assert locks.try_lock(f"{redis_store.page_key(shop_id)}:lock", 60)
    assert ask("GET", f"/shops/{shop_id}").status == 200


def test_a_full_refresh_without_the_queue_raises(types: World) -> None:
    types.queues.away = True
    with pytest.raises(QueueDown):
        shops_refresh.request_full_refresh()
