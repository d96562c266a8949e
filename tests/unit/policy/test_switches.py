"""Each route that changes something declares the switch that stops it, except for operators'."""

from __future__ import annotations

import json

import pytest

from cli.paths import CONTRACT
from local.stack.functions import load_function
from plaza.core.switches.model import Switch
from plaza.infra.http.routes import Endpoint
from plaza.infra.runtime.switch_state import ANY_WRITE
from plaza.people.auth.caller_identity import FRESH_ROUTES
from tools.contract import API

ROUTES = [
    route
    for path in sorted(API.glob("*/app.py"))
    for route in load_function(f"api/{path.parent.name}").app.endpoints.values()
]
READS = {"POST /reactions/query"}  # a read that needs a body
NEVER_STOPPED = ("/ops/", "/auth/", "/passkey")
# Two end sessions that may be stolen; the other changes a counter in Redis only, for reads.
ALSO_NEVER_STOPPED = {
    "DELETE /users/me/sessions/{session_id}",
    "DELETE /users/{user_id}/sessions",
    "POST /visitors",
}
USES_A_SWITCH = {
    "GET /posts/ranking",
    "GET /shops/{shop_id}/reviews/recommended",
    "POST /auth/sessions",
}
OWN_SWITCH = {
    "PATCH /posts/{post_id}": Switch.POSTS,
    "POST /posts": Switch.POSTS,
    "POST /posts/{post_id}/comments": Switch.COMMENTS,
    "POST /vouchers/{voucher_id}/orders": Switch.ORDERS,
}


def changes_something(route: Endpoint) -> bool:
    return route.route.method != "GET" and route.key not in READS


def is_never_stopped(route: Endpoint) -> bool:
    return route.route.path.startswith(NEVER_STOPPED) or route.key in ALSO_NEVER_STOPPED


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.key)
def test_a_route_that_changes_something_declares_its_switch(route: Endpoint) -> None:
    if changes_something(route) and not is_never_stopped(route):
        assert route.switch is OWN_SWITCH.get(route.key, ANY_WRITE)
    else:
        assert route.switch is None


def test_the_contract_has_the_problem_of_each_switch() -> None:
    paths = json.loads(CONTRACT.read_text())["paths"]
    for route in ROUTES:
        method, _, path = route.key.partition(" ")
        answers = paths[path][method.lower()]["responses"].get("503", {"content": {}})["content"]
        listed = any("switched-off" in content["examples"] for content in answers.values())
        is_stopped = route.switch is not None or route.is_held or route.key in USES_A_SWITCH
        assert listed == is_stopped, route.key


def test_routes_that_need_a_fresh_sign_in_read_its_time_from_mysql() -> None:
    """POST /passkeys needs one only without a code, so it asks itself."""
    fresh = {route.key for route in ROUTES if route.fresh_sign_in}
    assert fresh | {"POST /passkeys"} == FRESH_ROUTES
