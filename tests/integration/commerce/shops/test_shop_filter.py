"""The bloom filter of shops: no false negatives, few false positives."""

from __future__ import annotations

import random

import pytest

from plaza.commerce.shops import jobs, mysql_shops, queues, redis_store
from plaza.commerce.shops import queues as shops_queues
from plaza.commerce.shops.model import FILTER, ShopJobStep
from plaza.infra.derived import id_filter
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis
from tests.support.content_api import counting_work
from tests.support.keyspace import redis_us
from tests.support.plaza import World
from tests.support.shop_api import add_types, ask, build, create, insert

MISSING_IDS = 10_000
KEYS = redis_store.SHOP_IDS.keys


def may_exist(shop_id: int) -> bool:
    return redis_store.SHOP_IDS.query(shop_id).may_exist


def meta() -> dict[str, str]:
    fields = connections.client().hgetall(KEYS.meta)
    assert isinstance(fields, dict)
    return fields


def test_without_a_filter_each_shop_may_exist_and_one_build_is_requested(
    plaza: World,
) -> None:
    assert redis_store.SHOP_IDS.query(5) == (True, True)
    assert [redis_store.SHOP_IDS.query(i) for i in range(6, 10)] == [(True, False)] * 4


def test_during_a_build_each_shop_may_exist(plaza: World) -> None:
    redis_store.SHOP_IDS.begin("one", 10)
    redis_store.SHOP_IDS.fill("one", [1, 2], False)
    assert may_exist(3)
    redis_store.SHOP_IDS.fill("one", [3], True)
    assert [may_exist(i) for i in (1, 2, 3, 4)] == [True, True, True, False]


@pytest.mark.parametrize("lost", [KEYS.filter, KEYS.meta])
def test_a_filter_that_lost_a_key_is_not_used(plaza: World, lost: str) -> None:
    insert([(5, None, None, None)])
    build(ShopJobStep(FILTER))
    assert not may_exist(6)
    redis.execute("DEL", lost)
    assert may_exist(6)
    redis.execute("SETBIT", KEYS.filter, 5, 1)  # an incomplete filter
    assert may_exist(6)


def test_a_shop_is_in_the_filter_before_its_id_is_returned(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_types()
    build(ShopJobStep(FILTER))
    monkeypatch.setattr(
        "plaza.commerce.shops.refresh.project_shops", lambda *_: None
    )  # adds to the filter too
    shop_id = create()
    assert may_exist(shop_id)
    assert ask("GET", f"/shops/{shop_id}").status == 200


def test_a_shop_created_during_a_build_is_in_the_new_filter(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a shop that is created after the build read its page and before Redis stores it."""
    add_types()
    build(ShopJobStep(FILTER))
    shop_ids = []
    read_ids = mysql_shops.read_ids

    def read_then_make(after_id: int, limit: int) -> list[int]:
        ids = read_ids(after_id, limit)
        shop_ids.append(create())
        return ids

    with monkeypatch.context() as patch:
        patch.setattr(mysql_shops, "read_ids", read_then_make)
        build(ShopJobStep(FILTER))
    [shop_id] = shop_ids
    assert may_exist(shop_id)
    assert not may_exist(shop_id + 1)


def test_a_shop_committed_after_a_build_that_began_later_is_in_the_filter(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an id that was added before a build began and committed after it read MySQL."""
    add_types()
    insert_one = mysql_shops.insert

    def build_then_insert(*args: object) -> object:
        build(ShopJobStep(FILTER))
        return insert_one(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(mysql_shops, "insert", build_then_insert)
    shop_id = create()
    assert may_exist(shop_id)
    assert not may_exist(shop_id + 1)


def test_a_filter_filled_to_its_limit_has_few_false_positives(plaza: World) -> None:
    """Given 2^17 bits for 4,096 shops, which may grow to 5,461 before a rebuild."""
    redis_store.SHOP_IDS.begin("one", 4_096)
    redis_store.SHOP_IDS.fill("one", range(1, 4_097), True)
    assert int(meta()["bits"]) == 2**17
    redis_store.SHOP_IDS.add(range(4_097, 5_440))
    assert not redis_store.SHOP_IDS.query(1).build_due
    assert all(may_exist(i) for i in range(1, 5_440))
    rng = random.Random(9)
    false_positives = sum(may_exist(rng.randrange(10**6, 2**63)) for _ in range(MISSING_IDS))
    print(f"{false_positives} false positives of {MISSING_IDS} ids")
    assert false_positives <= 20


def test_a_full_filter_is_rebuilt_larger(plaza: World) -> None:
    insert([(i, None, None, None) for i in range(1, 6_001)])
    redis_store.SHOP_IDS.begin("one", 4_096)
    redis_store.SHOP_IDS.fill("one", range(1, 6_001), True)
    assert redis_store.SHOP_IDS.query(1) == (True, True)
    build(ShopJobStep(FILTER))
    assert int(meta()["bits"]) == 2**18
    assert redis_store.SHOP_IDS.query(1) == (True, False)
    assert int(meta()["members"]) > 5_900


def test_an_old_filter_is_rebuilt(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    build(ShopJobStep(FILTER))
    assert not redis_store.SHOP_IDS.query(1).build_due
    monkeypatch.setattr(id_filter, "REBUILD_AFTER_MS", -1)
    assert redis_store.SHOP_IDS.query(1) == (False, True)


def test_a_long_build_continues_through_the_queue_in_bounded_steps(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.commerce.shops.jobs.PAGE", 10)
    monkeypatch.setattr("plaza.commerce.shops.jobs.PAGES_PER_STEP", 3)
    insert([(i, None, None, None) for i in range(1, 96)])
    plaza.queues.send("shops", shops_queues.SHOPS.encode(ShopJobStep(FILTER)))
    with counting_work() as work:
        jobs.run_jobs([queues.SHOPS.decode(str(body)) for body in plaza.queues.take("shops")])
    assert work.statements == 1 + 3
    plaza.queues.drain()
    assert all(may_exist(i) for i in range(1, 96))
    assert not may_exist(96)


def test_a_second_build_is_refused_until_the_first_is_idle(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert redis_store.SHOP_IDS.begin("one", 10) == "BEGUN"
    assert redis_store.SHOP_IDS.begin("two", 10) == "BUSY"
    assert redis_store.SHOP_IDS.fill("one", [1], False) == "FILLED"
    assert redis_store.SHOP_IDS.begin("one", 10) == "BEGUN"
    assert redis_store.SHOP_IDS.fill("two", [], True) == "LOST"
    monkeypatch.setattr(id_filter, "BUILD_TIMEOUT_MS", -1)
    assert redis_store.SHOP_IDS.begin("two", 10) == "BEGUN"
    assert redis_store.SHOP_IDS.fill("one", [], True) == "LOST"
    assert redis_store.SHOP_IDS.fill("two", [1], True) == "FINISHED"
    assert redis_store.SHOP_IDS.fill("two", [], True) == "LOST"
    assert may_exist(1)


def test_times_of_a_build_that_are_ahead_of_the_clock_count_as_old(plaza: World) -> None:
    """Given a clock that went back by an hour."""
    shops, ahead_ms = redis_store.SHOP_IDS, redis_us() // 1000 + 3_600_000
    assert shops.query(5).build_due
    assert not shops.query(5).build_due
    redis.execute("HSET", KEYS.meta, "build_requested_at", ahead_ms)
    assert shops.query(5).build_due
    shops.begin("one", 10)
    redis.execute("HSET", KEYS.meta, "build_active_at", ahead_ms)
    assert shops.begin("two", 10) == "BEGUN"


def test_a_deleted_shop_is_in_the_filter_and_a_410(plaza: World) -> None:
    insert([(5, None, None, None)])
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6)")
    build(ShopJobStep(FILTER))
    assert ask("GET", "/shops/5").status == 410
