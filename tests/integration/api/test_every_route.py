"""All routes: anonymous callers are limited, and 401 comes before 400."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from plaza.core.reactions.model import Target
from plaza.infra.http import routes
from plaza.infra.http.limits import anonymous_bucket
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.process import clear_caches
from plaza.people.auth import caller_identity, new_session, session_end, session_lookup
from plaza.people.auth.redis_sessions import session_key
from plaza.people.auth.sessions import Method, Opening, hash_token, make_token
from tests.integration.people.auth.test_rate_limits import empty
from tests.support.consumers import statements
from tests.support.plaza import World
from tests.support.routes import contract, fill_path
from tests.support.sign_in_client import HOME, Reply, send
from tests.support.tables import TABLES
from tests.unit.policy import template
from tools.roles import read_matrix


class Route(NamedTuple):
    """A route of the template, with its ``security`` in the contract."""

    method: str
    path: str
    folder: str
    security: list[dict[str, list[str]]]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def call(
        self,
        authorization: str | None = None,
        *,
        body: str | None = None,
        query: str = "",
        ids: str = "11",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Sends a request with ``ids`` for each parameter of the path."""
        sent = {"authorization": authorization} if authorization is not None else {}
        path = fill_path(self.path, ids) + (f"?{query}" if query else "")
        sent |= headers or {}
        return send(self.method, path, body, headers=sent, folder=self.folder)


def find_routes() -> list[Route]:
    paths = contract()["paths"]
    results = []
    for (method, path), name in (template.routes() | {("GET", "/nowhere"): "SystemApi"}).items():
        folder = "/".join(template.folder_of(name).parts[-2:])
        security = paths.get(path, {}).get(method.lower(), {}).get("security", [])
        results.append(Route(method, path, folder, security))
    return sorted(results)


ROUTES = find_routes()
BY_ROLE = [route for route in ROUTES if route.security in routes.BY_ROLE]
OWN = [
    route for route in ROUTES if route.security in (routes.BEARER, routes.MEMBER, routes.OWNER)
] + BY_ROLE
# Routes that read a token and need no session: an invalid token is refused there too.
OPTIONAL = [route for route in ROUTES if route.security == routes.OPTIONAL]

# A constant, and a route with a bucket of its own: tests/integration/api/test_totals.py.
LIMITED = [route for route in ROUTES if route.path not in ("/health", "/totals")]

# Readers of the event log number its new events.
NUMBERED = {"event_head", "event_offset"}

every_limited_route = pytest.mark.parametrize("route", LIMITED, ids=lambda route: route.name)
every_own_route = pytest.mark.parametrize("route", OWN, ids=lambda route: route.name)
every_optional_route = pytest.mark.parametrize("route", OPTIONAL, ids=lambda route: route.name)


def test_all_routes_are_found() -> None:
    assert {(route.method, route.path) for route in ROUTES} == {
        *template.routes(),
        ("GET", "/nowhere"),
    }
    assert len(OWN) > 30
    assert len(OPTIONAL) > 10
    assert [route.name for route in ROUTES if route not in OWN + OPTIONAL] == [
        "GET /health",
        "GET /nowhere",
        "GET /openapi.json",
        "GET /totals",
        "POST /auth/codes",
        "POST /auth/sessions",
        "POST /visitors",
    ]


# ---------------------------------------------------------------- limits


def ended_token(*, kept: bool = True) -> str:
    """Returns a token whose session has ended; ``kept``: Redis still has the mark of its end."""
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    if kept:
        session_end.end_session(token)
    else:
        mysql.write("DELETE FROM session")
    return token


def expired_token() -> str:
    token = new_session.open_session(7)
    mysql.write("UPDATE session SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND")
    return token


@every_limited_route
def test_an_anonymous_caller_is_limited_by_network(plaza: World, route: Route) -> None:
    empty(anonymous_bucket(HOME), wait_s=6.5)
    invalid = [make_token(), ended_token(), expired_token()]
    for authorization in (None, "", "Basic x", *(f"Bearer {token}" for token in invalid)):
        reply = route.call(authorization, body="{")
        assert (reply.status, reply.problem) == (429, "too-many-requests"), authorization
        wait_s = int(reply.headers["retry-after"])
        assert wait_s in (6, 7), "half a second may pass on a busy machine"


@every_limited_route
def test_every_anonymous_request_counts_once(
    plaza: World, set_up: Callable[..., None], route: Route
) -> None:
    set_up(anonymous_per_s=0.001, anonymous_burst=3)
    assert [route.call().status == 429 for _ in range(5)] == [False] * 3 + [True] * 2


@pytest.mark.parametrize("kept", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize("seen", [True, False], ids=["known to the process", "unknown"])
def test_ended_tokens_are_limited_and_cost_few_statements(
    plaza: World, set_up: Callable[..., None], kept: bool, seen: bool
) -> None:
    set_up(anonymous_per_s=0.001, anonymous_burst=20)
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    caller_identity.identify(f"Bearer {token}", HOME, "GET /users/me")
    session_end.end_session(token)
    if not kept:
        redis.execute("DEL", session_key(hash_token(token)))
    if not seen:
        clear_caches()
    before = statements()
    callers = [
        caller_identity.identify(f"Bearer {token}", HOME, "GET /users/me") for _ in range(1_500)
    ]
    admitted = [caller for caller in callers if not caller.wait_ms]
    assert {caller.refusal for caller in admitted} == {"unknown"}
    assert len(admitted) == 20
    assert statements() - before <= 23


def test_an_ended_token_does_not_use_the_limit_of_its_user(plaza: World) -> None:
    token, ended = new_session.open_session(7), ended_token()
    for _ in range(300):
        caller_identity.identify(f"Bearer {ended}", HOME, "GET /users/me")
    assert caller_identity.identify(f"Bearer {token}", HOME, "GET /users/me").wait_ms == 0


# ---------------------------------------------------------------- 401 before 400

BAD: list[dict[str, Any]] = [
    {"body": "{"},
    {"body": '{"role": "admin", "x": "\\ud800"}'},
    {"body": "x" * 70_000},
    {"body": "a=b", "headers": {"content-type": "application/x-www-form-urlencoded"}},
    {"query": "limit=none&cursor=forged&x=abc&day=never&order=no"},
    {"ids": "abc"},
    {"headers": {"idempotency-key": "x" * 1_000}},
]


@every_own_route
def test_without_a_session_a_bad_request_is_401(plaza: World, route: Route) -> None:
    for bad in [{}, *BAD]:
        for authorization in (None, "Basic x", f"Bearer {make_token()}"):
            reply = route.call(authorization, **bad)
            assert (reply.status, reply.problem) == (401, "unauthenticated"), bad


@every_optional_route
def test_with_an_invalid_token_a_bad_request_is_401(plaza: World, route: Route) -> None:
    for bad in [{}, *BAD]:
        for authorization in ("Basic x", f"Bearer {make_token()}"):
            reply = route.call(authorization, **bad)
            assert (reply.status, reply.problem) == (401, "unauthenticated"), bad


@pytest.mark.parametrize("route", BY_ROLE, ids=lambda route: route.name)
def test_without_the_role_a_bad_request_of_a_route_by_role_is_403(
    plaza: World, route: Route
) -> None:
    authorization = f"Bearer {new_session.open_session(7)}"
    for bad in [{}, *BAD]:
        reply = route.call(authorization, **bad)
        assert (reply.status, reply.problem) == (403, "forbidden"), bad


def test_each_route_by_role_says_so() -> None:
    by_role = re.compile(r"\bFor (all roles|admins|moderators|operators|sales|servers)\b")
    assert {route.name for route in BY_ROLE} == {
        f"{method.upper()} {path}"
        for path, methods in contract()["paths"].items()
        for method, operation in methods.items()
        if by_role.search(operation["description"]) or path.startswith("/ops/")
    }


@pytest.mark.parametrize("role", ["moderator", "sales", "operator", "admin"])
def test_each_route_by_role_admits_the_roles_of_the_matrix_and_no_other(
    plaza: World, role: str
) -> None:
    mysql.write("INSERT INTO user (id, nickname, role) VALUES (7, 'ada', %s)", (role,))
    authorization = f"Bearer {new_session.open_session(7)}"
    admits = {access.route: role in access.roles for access in read_matrix()}
    for route in BY_ROLE:
        reply = route.call(authorization, query="no=1", ids="999")
        assert (reply.status != 403) == admits[route.name], route.name


@pytest.mark.parametrize("method", ["code", "id_token"])
def test_a_session_without_a_passkey_has_the_role_user(plaza: World, method: Method) -> None:
    mysql.write("INSERT INTO user (id, nickname, role) VALUES (7, 'ada', 'admin')")
    authorization = f"Bearer {new_session.open_session(7, opening=Opening(method))}"
    for route in BY_ROLE:
        assert route.call(authorization).status == 403, route.name


def test_with_a_session_a_bad_request_is_400(plaza: World) -> None:
    authorization = f"Bearer {new_session.open_session(7)}"
    [route] = [route for route in OWN if route.name == "PATCH /users/me"]
    for bad in BAD[:4]:
        assert route.call(authorization, **bad).problem == "invalid-request"


def test_get_changes_no_row(plaza: World) -> None:
    """Given an admin; the ids name the user, a post, a comment and a review."""
    mysql.write("INSERT INTO user (id, nickname, role) VALUES (11, 'ada', 'admin')")
    plaza.add(*(Target(of_type, 11) for of_type in ("post", "comment", "review")))
    authorization = f"Bearer {new_session.open_session(11)}"
    checksums = f"CHECKSUM TABLE {', '.join(sorted(TABLES.keys() - NUMBERED))}"
    before = mysql.fetch_all(checksums)
    replies = [route.call(authorization) for route in ROUTES if route.method == "GET"]
    assert mysql.fetch_all(checksums) == before
    assert sum(reply.status == 200 for reply in replies) > 40
