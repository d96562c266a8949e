"""Shops on the deployed stack: writes of admins, reads, search by distance, changes in MySQL."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from local.stack.stack import Stack
from tests.e2e.client import Client, problem, wait_until

ADMIN = 5_950_001
TYPE = 5_950_001
_places = count(1)  # each test has a place of its own


@pytest.fixture
def follow(stack: Stack) -> Callable[[], Any]:
    """``follow()`` invokes the binlog consumer, which otherwise runs every minute."""
    return lambda: stack.invoke("FollowBinlog", {})


@pytest.fixture
def add_type(
    rows: Callable[..., Any], anonymous: Client, follow: Callable[[], Any]
) -> Callable[[int], None]:
    """``add_type(7)`` inserts a shop type by SQL, and waits until it is listed."""

    def add(type_id: int) -> None:
        def is_listed() -> bool:
            items = anonymous("GET", "/shop-types").json["items"]
            return str(type_id) in [item["id"] for item in items]

        rows("INSERT IGNORE INTO shop_type (id, name, sort) VALUES (%s, 'Noodles', 1)", type_id)
        wait_until("the type is listed", lambda: is_listed() or (follow() and is_listed()))

    return add


@pytest.fixture
def place(add_type: Callable[[int], None]) -> dict[str, Any]:
    """An existing shop type, and a place without other shops."""
    add_type(TYPE)
    return {"type_id": str(TYPE), "place": {"x": -170.0 + next(_places), "y": -44.0}}


def test_a_shop_is_written_by_admins_and_public(
    admin: Client, anonymous: Client, user: Callable[[int], Client], place: dict[str, Any]
) -> None:
    made = admin("POST", "/shops", {"name": "Noodles", **place})
    assert made.status == 201
    path = f"/shops/{made.json['id']}"
    unreviewed = {"reviews": 0, "score_total": 0, "average_score": None}
    assert anonymous("GET", path).json == made.json | unreviewed
    for client, status in ((user(5_950_002), 403), (anonymous, 401)):
        assert client("PUT", path, {"name": "mine"}).status == status
        assert client("POST", "/shops", {"name": "mine"}).status == status
    changed = admin("PUT", path, {"name": "Soup", **place})
    assert (changed.status, changed.json["name"]) == (200, "Soup")
    assert anonymous("GET", path).json == changed.json | unreviewed
    assert admin("DELETE", path).status == 204
    deleted = anonymous("GET", path)
    assert (deleted.status, problem(deleted)) == (410, "gone")


def test_a_search_is_ordered_by_distance_and_updated_after_a_move(
    admin: Client, anonymous: Client, place: dict[str, Any]
) -> None:
    ids, (x, y) = [], place["place"].values()
    for km in (2, 1, 3):
        body = {"name": f"{km} km", **place, "place": {"x": x, "y": y + km / 111.2}}
        ids.append(admin("POST", "/shops", body).json["id"])
    near = f"/shops?x={x}&y={y}&type={TYPE}&radius=5000&limit=2"

    def names() -> list[str]:
        items, cursor = [], ""
        while True:
            reply = anonymous("GET", near + cursor)
            assert reply.status == 200, reply.json
            page = reply.json
            items += [shop["name"] for shop in page["items"]]
            if page["next"] is None:
                return items
            cursor = f"&cursor={page['next']}"

    assert names() == ["1 km", "2 km", "3 km"]
    nearest = anonymous("GET", near).json["items"][0]
    assert nearest["distance_m"] == pytest.approx(1_000, rel=0.01)
    admin("PUT", f"/shops/{ids[2]}", {"name": "here", **place})
    assert names() == ["here", "1 km", "2 km"]
    admin("PUT", f"/shops/{ids[2]}", {"name": "here", **place, "place": {"x": x + 0.5, "y": y}})
    assert names() == ["1 km", "2 km"]


def test_a_shop_changed_in_mysql_is_served(
    admin: Client,
    anonymous: Client,
    place: dict[str, Any],
    rows: Callable[..., Any],
    follow: Callable[[], Any],
) -> None:
    path = f"/shops/{admin('POST', '/shops', {'name': 'Noodles', **place}).json['id']}"
    assert anonymous("GET", path).json["name"] == "Noodles"
    rows("UPDATE shop SET name = 'Soup' WHERE id = %s", path.rpartition("/")[2])
    wait_until(
        "the change is served", lambda: follow() and anonymous("GET", path).json["name"] == "Soup"
    )


def test_types_are_listed_and_unknown_shops_are_404(
    anonymous: Client, place: dict[str, Any], add_type: Callable[[int], None]
) -> None:
    add_type(TYPE + 1)  # after the list was read, so it is in the list once the binlog was followed
    for path in ("/shops/4711", "/shops/abc"):
        missing = anonymous("GET", path)
        assert (missing.status, problem(missing)) == (404, "not-found")
    for query in ("x=1", "x=1&y=86", "x=1&y=1&radius=50001"):
        assert anonymous("GET", f"/shops?{query}").status == 400
