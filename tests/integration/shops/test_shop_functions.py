"""The functions of shops, in this process, with the samples of what invokes them."""

from __future__ import annotations

import json

import pytest

from plaza.infra import mysql, redis
from plaza.shops import redis_store
from tests.support.functions import ask, event, handler
from tests.support.plaza import World
from tests.support.shop_api import FOOD, SPA, add_types, insert, page

SHOPS = "api/shops"


@pytest.fixture
def shop(plaza: World) -> World:
    """Types, and the shop of the samples."""
    add_types()
    insert([(5, FOOD, 13.4, 52.52)])
    return plaza


def test_shops_are_read_and_written_as_the_samples_ask(shop: World) -> None:
    status, types = ask("shops.list_types", SHOPS)
    assert (status, [one["id"] for one in types["items"]]) == (200, [str(SPA), str(FOOD)])
    assert ask("shops.read_shop", SHOPS)[1]["name"] == "shop 5"
    assert [one["id"] for one in ask("shops.find_near", SHOPS)[1]["items"]] == ["5"]
    assert ask("shops.create_shop_as_user", SHOPS)[0] == 403
    status, made = ask("shops.create_shop", SHOPS)
    said = json.loads(event("shops.create_shop")["body"])
    assert (status, made["name"], made["address"]) == (201, said["name"], said["address"])
    assert ask("shops.replace_shop", SHOPS)[1]["name"] == said["name"]
    answer = handler(SHOPS)(event("shops.delete_shop"), None)
    assert (answer["statusCode"], answer["body"]) == (204, "")
    assert ask("shops.read_shop", SHOPS)[0] == 410


def test_shops_are_refreshed_and_walks_are_taken(shop: World) -> None:
    ask("shops.read_shop", SHOPS)
    mysql.write("UPDATE shop SET name = 'Soup', version = version + 1")
    response = handler("queue/rebuild_shops")(event("rebuild_shops.batch"), None)
    assert response == {"batchItemFailures": []}
    assert (page(5) or {})["name"] == "Soup"
    assert not redis_store.SHOP_IDS.query(6).may_exist
    assert redis.execute("ZCARD", redis_store.place_keys(FOOD).places) == 1


def test_a_page_is_let_go_of_once_more(shop: World) -> None:
    ask("shops.read_shop", SHOPS)
    assert page(5)
    response = handler("queue/drop_cached")(event("drop_cached.batch"), None)
    assert response == {"batchItemFailures": []}
    assert page(5) is None


@pytest.mark.parametrize("name", ["rebuild_shops", "drop_cached"])
def test_a_message_that_can_not_be_read_is_reported_alone(
    shop: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("plaza.infra.dead_letters.dead_letter", lambda *_: False)
    poison = event(f"{name}.poison")
    [failure] = handler(f"queue/{name}")(poison, None)["batchItemFailures"]
    assert failure["itemIdentifier"] == poison["Records"][-1]["messageId"]


def test_the_binlog_is_followed(shop: World) -> None:
    sample = event("follow_binlog.schedule")
    assert handler("schedule/follow_binlog")(sample, None) == {"rows": 0, "lost": 1}
    ask("shops.read_shop", SHOPS)
    mysql.write("UPDATE shop SET name = 'Soup'")
    assert handler("schedule/follow_binlog")(sample, None) == {"rows": 1, "lost": 0}
    assert ask("shops.read_shop", SHOPS)[1]["name"] == "Soup"


def test_what_redis_cannot_be_told_now_comes_again(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = []
    monkeypatch.setattr("plaza.infra.consumer._hide", lambda queue, _: hidden.append(queue))

    def down(*_: object, **__: object) -> None:
        raise redis.RedisDown("Redis is away (a test says so)")

    monkeypatch.setattr(redis, "run_all", down)
    batch = event("drop_cached.batch")
    [failure] = handler("queue/drop_cached")(batch, None)["batchItemFailures"]
    assert failure["itemIdentifier"] == batch["Records"][0]["messageId"]
    assert hidden == ["drops"]
