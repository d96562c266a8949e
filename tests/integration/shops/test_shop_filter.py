"""The Bloom filter of shops: it never says no to a shop, and seldom maybe to a stranger."""

from __future__ import annotations

import random

import pytest

from plaza.infra import id_filter, mysql, redis
from plaza.shops import jobs, mysql_shops, queues, redis_store
from plaza.shops.model import FILTER, ShopJobStep
from tests.support.content_api import counting_work
from tests.support.plaza import World
from tests.support.shop_api import add_types, ask, build, insert, made

STRANGERS = 10_000
KEYS = redis_store.SHOP_IDS.keys


def maybe(shop_id: int) -> bool:
    return redis_store.SHOP_IDS.query(shop_id).may_exist


def meta() -> dict[str, str]:
    found = redis.client().hgetall(KEYS.meta)
    assert isinstance(found, dict)
    return found


def test_without_a_filter_everybody_may_be_there_and_one_is_asked_to_build_it(
    plaza: World,
) -> None:
    assert redis_store.SHOP_IDS.query(5) == (True, True)
    assert [redis_store.SHOP_IDS.query(i) for i in range(6, 10)] == [(True, False)] * 4


def test_while_it_is_built_everybody_may_be_there(plaza: World) -> None:
    redis_store.SHOP_IDS.begin("one", 10)
    redis_store.SHOP_IDS.fill("one", [1, 2], False)
    assert maybe(3)
    redis_store.SHOP_IDS.fill("one", [3], True)
    assert [maybe(i) for i in (1, 2, 3, 4)] == [True, True, True, False]


@pytest.mark.parametrize("lost", [KEYS.filter, KEYS.meta])
def test_a_filter_that_lost_a_part_is_not_believed(plaza: World, lost: str) -> None:
    insert([(5, None, None, None)])
    build(ShopJobStep(FILTER))
    assert not maybe(6)
    redis.execute("DEL", lost)
    assert maybe(6)
    redis.execute("SETBIT", KEYS.filter, 5, 1)  # as a filter that began anew, half filled
    assert maybe(6)


def test_a_shop_is_in_it_before_anybody_is_told_its_id(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_types()
    build(ShopJobStep(FILTER))
    monkeypatch.setattr("plaza.shops.refresh.project_shops", lambda *_: None)  # not by what follows
    shop_id = made()
    assert maybe(shop_id)
    assert ask("GET", f"/shops/{shop_id}").status == 200


def test_a_shop_that_is_made_while_a_filter_is_built_is_in_that_too(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page was read, then the shop was made, then the page came to Redis."""
    add_types()
    build(ShopJobStep(FILTER))
    shop_ids = []
    read_ids = mysql_shops.read_ids

    def read_then_make(after_id: int, limit: int) -> list[int]:
        found = read_ids(after_id, limit)
        shop_ids.append(made())
        return found

    with monkeypatch.context() as patch:
        patch.setattr(mysql_shops, "read_ids", read_then_make)
        build(ShopJobStep(FILTER))
    [shop_id] = shop_ids
    assert maybe(shop_id)
    assert not maybe(shop_id + 1)


def test_a_shop_whose_row_comes_after_the_build_began_and_read_past_it_is_in_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Added before the build began, committed after it had read: the second adding counts."""
    add_types()
    insert_one = mysql_shops.insert

    def build_then_insert(*args: object) -> object:
        build(ShopJobStep(FILTER))
        return insert_one(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(mysql_shops, "insert", build_then_insert)
    shop_id = made()
    assert maybe(shop_id)
    assert not maybe(shop_id + 1)


def test_the_fullest_that_it_gets_lets_few_strangers_pass(plaza: World) -> None:
    """2^17 bits for 4,096 shops, which may become 5,461 before it is built again."""
    redis_store.SHOP_IDS.begin("one", 4_096)
    redis_store.SHOP_IDS.fill("one", range(1, 4_097), True)
    assert int(meta()["bits"]) == 2**17
    redis_store.SHOP_IDS.add(range(4_097, 5_440))
    assert not redis_store.SHOP_IDS.query(1).build_due
    assert all(maybe(i) for i in range(1, 5_440))
    chance = random.Random(9)
    passed = sum(maybe(chance.randrange(10**6, 2**63)) for _ in range(STRANGERS))
    print(f"of {STRANGERS} strangers {passed} passed")
    assert passed <= 20


def test_a_full_filter_is_built_again_larger(plaza: World) -> None:
    insert([(i, None, None, None) for i in range(1, 6_001)])
    redis_store.SHOP_IDS.begin("one", 4_096)
    redis_store.SHOP_IDS.fill("one", range(1, 6_001), True)
    assert redis_store.SHOP_IDS.query(1) == (True, True)
    build(ShopJobStep(FILTER))
    assert int(meta()["bits"]) == 2**18
    assert redis_store.SHOP_IDS.query(1) == (True, False)
    assert int(meta()["members"]) > 5_900


def test_it_is_built_again_after_a_time(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    build(ShopJobStep(FILTER))
    assert not redis_store.SHOP_IDS.query(1).build_due
    monkeypatch.setattr(id_filter, "REBUILD_AFTER_MS", -1)
    assert redis_store.SHOP_IDS.query(1) == (False, True)


def test_a_long_build_goes_on_through_the_queue_in_bounded_steps(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.shops.jobs.PAGE", 10)
    monkeypatch.setattr("plaza.shops.jobs.PAGES_PER_STEP", 3)
    insert([(i, None, None, None) for i in range(1, 96)])
    plaza.queues.send("shops", ShopJobStep(FILTER).to_json())
    with counting_work() as work:
        jobs.run_jobs([queues.SHOPS.decode(body) for body in plaza.queues.take("shops")])
    assert work.statements == 1 + 3
    plaza.queues.drain()
    assert all(maybe(i) for i in range(1, 96))
    assert not maybe(96)


def test_builds_do_not_disturb_each_other(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert maybe(1)


def test_a_deleted_shop_may_be_there_so_that_it_can_be_said_to_be_gone(plaza: World) -> None:
    insert([(5, None, None, None)])
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6)")
    build(ShopJobStep(FILTER))
    assert ask("GET", "/shops/5").status == 410
