"""Cursors that another version issued: a 400 if their shape is another one, and never a 500."""

from __future__ import annotations

from itertools import product

import pytest

from plaza.infra.http.cursors import pack_cursor
from tests.integration.api.test_every_route import ROUTES, Route
from tests.support.content_api import ask
from tests.support.plaza import World
from tests.support.routes import contract, fill_path

QUERIES = {"/shops": "x=13.4&y=52.5&radius=1000&", "/posts": "ids=11&"}
MAX_PARTS = 3  # of the cursors of any list; the signature of signed ones is one more
_PARTS: tuple[int | str, ...] = (2**63 - 1, -1, "post")
OTHER_SHAPES = [
    pack_cursor(),
    pack_cursor(1, 2, 3, 4, 5),
    pack_cursor("a", "b", "c", "d", "e"),
    "e30",  # {}
    "WzEuNSwyXQ",  # [1.5,2]
    "W1sxXSwyXQ",  # [[1],2]
    "WzEsbnVsbF0",  # [1,null]
    "W3RydWUsMV0",  # [true,1]
    "not-a-cursor",
    "_",
]


def _has_cursor(route: Route) -> bool:
    operation = contract()["paths"].get(route.path, {}).get(route.method.lower(), {})
    return any(parameter["name"] == "cursor" for parameter in operation.get("parameters", ()))


LISTS = [route for route in ROUTES if _has_cursor(route)]
every_list = pytest.mark.parametrize("route", LISTS, ids=lambda route: route.name)


def send(route: Route, cursor: str) -> tuple[int, str]:
    """Return the status and the type of the problem."""
    query = QUERIES.get(route.path, "")
    path = f"{fill_path(route.path)}?{query}cursor={cursor}"
    reply = ask(route.method, path, role="admin", folder=route.folder)
    return reply.status, reply.body.get("detail", "") if reply.status >= 400 else ""


def test_lists_with_cursors_are_found() -> None:
    assert len(LISTS) >= 25


@every_list
def test_a_cursor_of_another_shape_is_a_400(plaza: World, route: Route) -> None:
    for cursor in OTHER_SHAPES:
        status, detail = send(route, cursor)
        assert (status, "cursor" in detail) == (400, True), (cursor, detail)


@every_list
def test_a_cursor_of_any_shape_is_no_server_error(plaza: World, route: Route) -> None:
    for count in range(1, MAX_PARTS + 1):
        for parts in product(_PARTS, repeat=count):
            assert send(route, pack_cursor(*parts))[0] < 500, parts
