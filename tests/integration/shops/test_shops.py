"""Shops through their function: who may write, what is read, what it costs, what may be away."""

from __future__ import annotations

import random

import pytest

from plaza.infra import cache, mysql, redis
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.shops import mysql_shops, queries, redis_store
from plaza.shops import refresh as shops_refresh
from plaza.shops.model import FILTER, REMOVED_VERSION, ShopJobStep, ShopMissing
from tests.integration.conftest import Away
from tests.support.content_api import counting_work
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
    let_it_be_stale,
    made,
    page,
    refresh,
    write,
)


@pytest.fixture
def types(plaza: World) -> World:
    add_types()
    return plaza


# ---------------------------------------------------------------- what is read


def test_a_shop_is_made_and_read(types: World) -> None:
    shop_id = made()
    reply = ask("GET", f"/shops/{shop_id}", user=None)
    assert reply.status == 200
    assert {name: reply.body[name] for name in NOODLES} == NOODLES
    assert reply.body["id"] == str(shop_id)
    assert reply.body["created_at"] == reply.body["updated_at"]


def test_a_shop_that_was_only_ever_a_name_is_one(types: World) -> None:
    insert([(5, None, None, None)])
    body = ask("GET", "/shops/5").body
    assert (body["name"], body["type_id"], body["place"], body["images"]) == (
        "shop 5",
        None,
        None,
        [],
    )


def test_types_are_listed_in_their_order(types: World) -> None:
    reply = ask("GET", "/shop-types")
    assert [(one["id"], one["name"]) for one in reply.body["items"]] == [
        ("2", "Spa"),
        ("1", "Food"),
    ]
    assert ask("GET", "/shop-types", user=None).body == reply.body
    with counting_work() as work:
        ask("GET", "/shop-types")
    assert (work.statements, work.round_trips) == (0, 1)


def test_there_may_be_no_types(plaza: World) -> None:
    assert ask("GET", "/shop-types").body == {"items": [], "next": None}


def test_a_shop_that_is_warm_costs_one_round_trip_and_no_statement(types: World) -> None:
    shop_id = made()
    ask("GET", f"/shops/{shop_id}")
    with counting_work() as work:
        assert ask("GET", f"/shops/{shop_id}").status == 200
    assert (work.statements, work.round_trips) == (0, 1)


def test_a_shop_that_redis_does_not_have_costs_one_statement(types: World) -> None:
    shop_id = made()
    types.queues.drain()
    with counting_work() as work:
        ask("GET", f"/shops/{shop_id}")
    assert work.statements == 1


@pytest.mark.parametrize("shop_id", ["4711", "abc", "0", "9223372036854775808"])
def test_what_is_no_shop_is_not_found(types: World, shop_id: str) -> None:
    for method, body in (("GET", None), ("PUT", NOODLES), ("DELETE", None)):
        reply = write(method, f"/shops/{shop_id}", body)
        assert (reply.status, reply.slug) == (404, "not-found"), method


# ---------------------------------------------------------------- who may write what


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
    ("said", "field"),
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
def test_what_makes_no_sense_is_refused(types: World, said: dict[str, object], field: str) -> None:
    insert([(5, FOOD, None, None)])
    for method, path in (("POST", "/shops"), ("PUT", "/shops/5")):
        refused = write(method, path, NOODLES | said)
        assert (refused.status, refused.slug) == (400, "invalid-request")
        assert refused.body["detail"].startswith(field), refused.body
    assert mysql.fetch_all("SELECT id, version FROM shop") == [(5, 1)]


def test_a_whole_number_may_have_a_point(types: World) -> None:
    assert (
        write("POST", "/shops", NOODLES | {"avg_price_cents": 14.0}).body["avg_price_cents"] == 14
    )


def test_numbers_that_json_does_not_know_are_refused(types: World) -> None:
    refused = write("POST", "/shops", '{"name": "x", "place": {"x": NaN, "y": Infinity}}')
    assert (refused.status, refused.slug) == (400, "invalid-request")


# ---------------------------------------------------------------- writes and the cache


def test_what_was_changed_is_read_at_once(types: World) -> None:
    shop_id = made()
    ask("GET", f"/shops/{shop_id}")
    changed = write("PUT", f"/shops/{shop_id}", {"name": "Soup"})
    assert changed.status == 200
    assert page(shop_id) is None
    body = ask("GET", f"/shops/{shop_id}").body
    assert body == changed.body
    assert (body["name"], body["type_id"], body["place"], body["images"]) == (
        "Soup",
        None,
        None,
        [],
    )
    assert body["updated_at"] > body["created_at"]


def test_who_read_before_a_change_does_not_bring_the_old_page_back(types: World) -> None:
    shop_id = made()
    old = mysql_shops.read([shop_id])
    write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup"})
    key = redis_store.page_key(shop_id)
    entry = cache.CacheEntry(old[shop_id].version, old[shop_id].to_text())
    assert cache.store_all(cache.STALE_WHILE_REBUILDING, {key: entry}, create=True) == [False]
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"


def test_an_old_page_that_came_back_is_gone_a_second_later(types: World) -> None:
    shop_id = made()
    ask("GET", f"/shops/{shop_id}")
    old = redis.execute("HGETALL", redis_store.page_key(shop_id))
    write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup"})
    pairs = old.items() if isinstance(old, dict) else zip(old[::2], old[1::2], strict=True)
    for name, value in pairs:  # a Redis that lost the fence, and a reader with old data
        redis.execute("HSET", redis_store.page_key(shop_id), name, value)
    assert ask("GET", f"/shops/{shop_id}").body["name"] == NOODLES["name"]
    types.queues.messages.pop("shops")  # the second deletion is enough
    types.queues.drain()
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"


def test_a_write_sends_an_announcement_before_and_a_second_deletion_after(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "plaza.infra.sqs.send", lambda queue, body, delay_s=0: order.append((queue, delay_s))
    )
    drop_all = cache.drop_all
    monkeypatch.setattr(cache, "drop_all", lambda versions: order.append(("deleted", 0)))
    shop_id = made()
    assert order == [("shops", 15), ("deleted", 0), ("drops", 1)]
    monkeypatch.setattr(cache, "drop_all", drop_all)
    order.clear()
    write("DELETE", f"/shops/{shop_id}")
    assert order == [("shops", 15), ("drops", 1)]


@pytest.mark.parametrize(
    "dies_at", ["plaza.infra.cache.drop_all", "plaza.infra.cache.schedule_drop"]
)
def test_who_dies_after_the_commit_is_made_up_for_by_the_announcement(
    types: World, monkeypatch: pytest.MonkeyPatch, dies_at: str
) -> None:
    build_places()
    shop_id = made()
    ask("GET", f"/shops/{shop_id}")
    types.queues.messages.clear()

    class Killed(BaseException):
        """The process is gone."""

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(dies_at, die)
        with pytest.raises(Killed):
            write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup", "type_id": str(SPA)})
    types.queues.drain()
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"
    near = f"/shops?x={BERLIN[0]}&y={BERLIN[1]}"
    assert ask("GET", f"{near}&type={FOOD}").body["items"] == []
    assert [one["id"] for one in ask("GET", f"{near}&type={SPA}").body["items"]] == [str(shop_id)]


def test_a_write_is_done_though_redis_can_not_be_told(
    types: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop_id = made()
    ask("GET", f"/shops/{shop_id}")

    def down(*_: object) -> None:
        raise RedisDown("Redis is away (a test says so)")

    with monkeypatch.context() as patch:
        patch.setattr("plaza.infra.projections.drop_all", down)
        changed = write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup"})
        assert changed.status == 200
        assert "projection_delayed" in capsys.readouterr().out
        for body in types.queues.take("drops"):
            with pytest.raises(RedisDown):  # so that SQS brings it again
                cache.drop_again([cache.CacheDrops.from_json(body)])
            types.queues.send("drops", body)
    types.queues.drain()
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"


def test_a_write_is_done_though_the_queue_is_away(
    types: World, capsys: pytest.CaptureFixture[str]
) -> None:
    types.queues.away = True
    shop_id = made()
    assert ask("GET", f"/shops/{shop_id}").status == 200
    said = capsys.readouterr().out
    assert "write_not_announced" in said
    assert "delayed_drop_not_queued" in said


def test_a_deleted_shop_is_gone(types: World) -> None:
    build_places()
    shop_id = made()
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


def test_a_stale_page_is_shown_and_read_again_once(types: World) -> None:
    shop_id = made()
    ask("GET", f"/shops/{shop_id}")
    types.queues.drain()
    mysql.write("UPDATE shop SET name = 'Soup' WHERE id = %s", (shop_id,))  # and nobody said so
    let_it_be_stale(shop_id)
    with counting_work() as work:
        names = [ask("GET", f"/shops/{shop_id}").body["name"] for _ in range(20)]
    assert names == [NOODLES["name"]] * 20
    assert work.statements == 0
    assert len(types.queues.messages["shops"]) == 1
    with counting_work() as work:
        refresh(shop_id)
    assert work.statements == 2
    assert ask("GET", f"/shops/{shop_id}").body["name"] == "Soup"


def test_a_stale_page_is_shown_though_mysql_and_the_queue_are_away(
    types: World, mysql_away: Away
) -> None:
    shop_id = made()
    ask("GET", f"/shops/{shop_id}")
    let_it_be_stale(shop_id)
    types.queues.away = True
    with mysql_away():
        assert ask("GET", f"/shops/{shop_id}").status == 200
        assert ask("GET", "/shops/4711").status == 503


# ---------------------------------------------------------------- what isn't there


def test_10_000_random_ids_cost_at_most_20_database_reads(types: World) -> None:
    insert([(i, FOOD, None, None) for i in range(1, 10_001)])
    ask("GET", "/shops/1")
    types.queues.drain()
    chance = random.Random(6)
    strangers = [chance.randrange(10_001, 2**63) for _ in range(10_000)]
    with counting_work() as work:
        for shop_id in strangers:
            with pytest.raises(ShopMissing):
                queries.read(shop_id)
    print(f"10,000 random ids: {work.statements} database reads")
    assert work.statements <= 20
    assert all(queries.read(i).name == f"shop {i}" for i in (1, 5_000, 10_000))


def test_a_stranger_who_passes_the_filter_is_remembered(types: World) -> None:
    build(ShopJobStep(FILTER))
    redis_store.SHOP_IDS.add([4711])
    with counting_work() as work:
        assert [ask("GET", "/shops/4711").status for _ in range(50)] == [404] * 50
    assert work.statements == 1
    insert([(4711, FOOD, None, None)])
    refresh(4711)
    assert ask("GET", "/shops/4711").status == 200


def test_a_row_that_was_taken_out_is_not_there_and_an_old_reader_can_not_bring_it_back(
    types: World,
) -> None:
    shop_id = made()
    old = mysql_shops.read([shop_id])[shop_id]
    mysql.write("DELETE FROM shop")
    refresh(shop_id)
    key = redis_store.page_key(shop_id)
    entry = cache.CacheEntry(old.version, old.to_text())
    assert cache.store_all(cache.STALE_WHILE_REBUILDING, {key: entry}, create=True) == [False]
    assert redis.execute("HGET", key, "version") == str(REMOVED_VERSION)
    assert ask("GET", f"/shops/{shop_id}").status == 404


# ---------------------------------------------------------------- what may be away


def test_without_redis_mysql_is_asked_now_and_then_and_the_rest_get_503(
    types: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop_id = made()
    at_s = 1_000.0
    bucket = TokenBucket(rate_per_s=20, burst=40, clock=lambda: at_s)
    monkeypatch.setattr("plaza.shops.queries._fallback_budget", bucket)
    with redis_away():
        with counting_work() as work:
            replies = [ask("GET", f"/shops/{shop_id}") for _ in range(500)]
        statuses = [reply.status for reply in replies]
        assert (statuses.count(200), statuses.count(503)) == (40, 460)
        assert work.statements == 40
        assert int(replies[-1].headers["retry-after"]) >= 1
        at_s += 1
        assert [ask("GET", f"/shops/{shop_id}").status for _ in range(30)].count(200) == 20
        at_s += 1
        for path in ("/shop-types", "/shops?x=13.4&y=52.52", "/shops/4711"):
            assert ask("GET", path).status in (200, 404)
        assert write("POST", "/shops", NOODLES).status in (201, 503)
    assert ask("GET", f"/shops/{shop_id}").status == 200


def test_a_reader_who_finds_the_lock_taken_for_long_asks_mysql_now_and_then(
    types: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop_id = made()
    monkeypatch.setattr(cache, "WAIT_S", 0.01)
    assert redis.try_lock(f"{redis_store.page_key(shop_id)}:lock", 60)
    assert ask("GET", f"/shops/{shop_id}").status == 200


def test_a_rebuild_is_tried_again_when_the_queue_was_away(types: World) -> None:
    types.queues.away = True
    with pytest.raises(QueueDown):
        shops_refresh.request_full_refresh()
