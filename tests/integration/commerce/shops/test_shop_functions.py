"""The functions of shops, with sample events."""

from __future__ import annotations

import json

import pytest

from plaza.commerce.changes.gauges import read_binlog_lag
from plaza.commerce.shops import redis_store
from plaza.infra.jobs.scheduled_jobs import read_runs
from plaza.infra.mysql import mysql
from plaza.infra.redis import errors, redis
from plaza.infra.runtime.process import reset_process
from tests.support.failures import failing
from tests.support.functions import ask, event, handler
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.shop_api import FOOD, SPA, add_types, insert, page

SHOPS = "api/shops"


@pytest.fixture
def shop(plaza: World) -> World:
    """The types and the shop of the sample events."""
    add_types()
    insert([(5, FOOD, 13.4, 52.52)])
    return plaza


def test_the_sample_events_read_and_write_shops(shop: World) -> None:
    status, types = ask("shops.list_shop_types", SHOPS)
    assert (status, [items["id"] for items in types["items"]]) == (200, [str(SPA), str(FOOD)])
    assert ask("shops.get_shop", SHOPS)[1]["name"] == "shop 5"
    assert [items["id"] for items in ask("shops.list_nearby_shops", SHOPS)[1]["items"]] == ["5"]
    assert ask("shops.create_shop_as_user", SHOPS)[0] == 403
    status, created = ask("shops.create_shop", SHOPS)
    body = json.loads(event("shops.create_shop")["body"])
    assert (status, created["name"], created["address"]) == (201, body["name"], body["address"])
    assert ask("shops.replace_shop", SHOPS)[1]["name"] == body["name"]
    response = handler(SHOPS)(event("shops.delete_shop"), None)
    assert (response["statusCode"], response["body"]) == (204, "")
    assert ask("shops.get_shop", SHOPS)[0] == 410


def test_shops_are_refreshed_and_jobs_run(shop: World) -> None:
    ask("shops.get_shop", SHOPS)
    mysql.write("UPDATE shop SET name = 'Soup', version = version + 1")
    response = handler("queue/rebuild_shops")(event("rebuild_shops.batch"), None)
    assert response == {"batchItemFailures": []}
    assert (page(5) or {})["name"] == "Soup"
    assert not redis_store.SHOP_IDS.query(6).may_exist
    [key] = find_keys(f"*:shops:[0-9]*:{FOOD}")
    assert redis.execute("ZCARD", key) == 1


def test_a_page_is_dropped_a_second_time(shop: World) -> None:
    ask("shops.get_shop", SHOPS)
    assert page(5)
    response = handler("queue/drop_cached")(event("drop_cached.batch"), None)
    assert response == {"batchItemFailures": []}
    assert page(5) is None


@pytest.mark.parametrize("name", ["rebuild_shops", "drop_cached"])
def test_only_the_invalid_message_of_a_batch_is_reported(
    shop: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("plaza.infra.queues.dead_letters.dead_letter", lambda *_: False)
    batch = event(f"{name}.poison")
    [failure] = handler(f"queue/{name}")(batch, None)["batchItemFailures"]
    assert failure["itemIdentifier"] == batch["Records"][-1]["messageId"]


def test_the_binlog_is_followed(shop: World) -> None:
    sample = event("follow_binlog.schedule")
    assert handler("schedule/follow_binlog")(sample, None) == {"rows": 0, "lost": 1, "lag_s": 0}
    ask("shops.get_shop", SHOPS)
    mysql.write("UPDATE shop SET name = 'Soup'")
    assert handler("schedule/follow_binlog")(sample, None) == {"rows": 1, "lost": 0, "lag_s": 0}
    assert ask("shops.get_shop", SHOPS)[1]["name"] == "Soup"


@pytest.mark.parametrize("binlog", ["off", ""])
def test_without_a_binlog_its_follower_does_nothing(
    shop: World, binlog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_BINLOG", binlog)
    reset_process()

    monkeypatch.setattr(
        "plaza.infra.mysql.binlog.read_end", failing(AssertionError("MySQL may have no binlog"))
    )
    assert handler("schedule/follow_binlog")(event("follow_binlog.schedule"), None) == {}
    run = read_runs()["follow_binlog"]
    assert (run.error, run.result) == (None, {}), "it ran, and is not behind"
    assert read_binlog_lag() == {}


def test_a_drop_without_redis_is_retried(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = []
    monkeypatch.setattr("plaza.infra.queues.processor._hide", lambda queue, _: hidden.append(queue))

    monkeypatch.setattr(redis, "run_all", failing(errors.RedisDown("by the test")))
    batch = event("drop_cached.batch")
    [failure] = handler("queue/drop_cached")(batch, None)["batchItemFailures"]
    assert failure["itemIdentifier"] == batch["Records"][0]["messageId"]
    assert hidden == ["drops"]
