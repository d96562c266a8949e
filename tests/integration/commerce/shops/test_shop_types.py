"""Shop types: written by admins, listed at once, not deleted while a shop has them."""

from __future__ import annotations

import pytest

from tests.support.functions import ask as ask_sample
from tests.support.functions import event, handler
from tests.support.plaza import World
from tests.support.shop_api import FOOD, SPA, add_types, ask, create, write

ICON = "https://pics.example/bar.png"


def names() -> list[str]:
    return [items["name"] for items in ask("GET", "/shop-types").body["items"]]


def test_a_created_changed_or_deleted_type_is_listed_at_once(plaza: World) -> None:
    add_types()
    assert names() == ["Spa", "Food"]  # caches the types
    reply = write("POST", "/shop-types", {"name": "Bar", "icon": ICON, "sort": -1})
    assert (reply.status, reply.body["name"], reply.body["icon"]) == (201, "Bar", ICON)
    assert names() == ["Bar", "Spa", "Food"]
    path = f"/shop-types/{reply.body['id']}"
    changed = write("PUT", path, {"name": "Pub", "sort": 9})
    assert changed.body == {"id": reply.body["id"], "name": "Pub", "icon": None}
    assert names() == ["Spa", "Food", "Pub"]
    assert write("DELETE", path).status == 204
    assert names() == ["Spa", "Food"]


def test_a_shop_can_have_a_new_type(plaza: World) -> None:
    type_id = write("POST", "/shop-types", {"name": "Bar"}).body["id"]
    shop = create(type_id=type_id)
    assert ask("GET", f"/shops/{shop}").body["type_id"] == type_id


def test_a_type_is_not_deleted_while_a_shop_has_it(plaza: World) -> None:
    add_types()
    shop = create(type_id=str(FOOD))
    refused = write("DELETE", f"/shop-types/{FOOD}")
    assert (refused.status, refused.body["type"].rpartition("/")[2]) == (409, "type-in-use")
    assert write("DELETE", f"/shop-types/{SPA}").status == 204
    write("DELETE", f"/shops/{shop}")
    assert write("DELETE", f"/shop-types/{FOOD}").status == 204
    assert names() == []


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_missing_type_is_a_404(plaza: World, method: str) -> None:
    body = {"name": "Bar"} if method == "PUT" else None
    assert write(method, "/shop-types/77", body).status == 404


def test_only_admins_write_types(plaza: World) -> None:
    for method, path in (
        ("POST", "/shop-types"),
        ("PUT", "/shop-types/1"),
        ("DELETE", "/shop-types/1"),
    ):
        body = None if method == "DELETE" else {"name": "Bar"}
        assert ask(method, path, body).status == 403
        assert ask(method, path, body, user=7).status == 403


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "x" * 65}, {"name": "a\nb"}, {"name": "a", "icon": "ftp://x"}],
)
def test_an_invalid_type_is_a_400(plaza: World, body: dict[str, str]) -> None:
    assert write("POST", "/shop-types", body).status == 400


def test_the_sample_events_write_types(plaza: World) -> None:
    add_types()
    status, created = ask_sample("shops.create_shop_type", "api/shops")
    assert (status, created["name"]) == (201, "Food")
    assert ask_sample("shops.replace_shop_type", "api/shops")[1]["id"] == str(FOOD)
    response = handler("api/shops")(event("shops.delete_shop_type"), None)
    assert (response["statusCode"], response["body"]) == (204, "")
