"""What all routes have in common: unknown parameters, HEAD, and the headers of rate limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from local.stack.gateway import Request
from plaza.core.reactions import Target
from plaza.infra.http.limits import anonymous_bucket
from plaza.infra.http.routes import SERVER
from plaza.people.auth import new_session
from plaza.people.auth.caller_identity import bucket_of_user
from plaza.people.auth.operate_server_keys import make_server_key
from tests.integration.api.test_every_route import BY_ROLE, LIMITED, ROUTES, Route
from tests.integration.conftest import Away
from tests.integration.people.auth.test_rate_limits import empty
from tests.integration.people.auth.test_sessions import set_role
from tests.support.balancer import make_balancer_event
from tests.support.functions import event, handler
from tests.support.plaza import World
from tests.support.routes import fill_path
from tests.support.sign_in_client import HOME, Reply, send
from tests.support.stores import POST

DECLARED = [route for route in LIMITED if route.path != "/nowhere"]
READS = [route for route in ROUTES if route.method == "GET"]
LIKE = f"/posts/{POST.id}/likes/me"


def sign_in(route: Route | None = None) -> str:
    """Return a token of user 7, of an admin if the route requires one, or the key of a server."""
    if route is not None and route.security == SERVER:
        return make_server_key("app", {"act"}, 1_000, operator_id="test")[1]
    set_role(7, "admin" if route in BY_ROLE else "user")
    return new_session.open_session(7)


# ---------------------------------------------------------------- unknown parameters


@pytest.mark.parametrize("route", DECLARED, ids=lambda route: route.name)
def test_an_unknown_query_parameter_is_400(plaza: World, route: Route) -> None:
    names = {"{queue}": "orders_dlq", "{subscription_id}": "0" * 64}
    names |= {"{passkey_id}": "0" * 32, "{session_id}": "0" * 32, "{key_id}": "0" * 16}
    ids = next((value for name, value in names.items() if name in route.path), "11")
    reply = route.call(f"Bearer {sign_in(route)}", query="Limit=1&verbose=", ids=ids)
    assert (reply.status, reply.problem) == (400, "invalid-request"), reply.body
    detail = "is unknown"
    unknown = [
        {"field": f"query.{name}", "code": "unknown", "detail": detail}
        for name in ("Limit", "verbose")
    ]
    assert [error for error in reply.body["errors"] if error in unknown] == unknown


def test_an_unknown_parameter_is_refused_beside_valid_ones_and_changes_nothing(
    plaza: World,
) -> None:
    plaza.add(POST)
    token = sign_in()
    reply = send("GET", f"/posts/{POST.id}/likers?limit=2&page=2")
    assert (reply.status, [error["field"] for error in reply.body["errors"]]) == (
        400,
        ["query.page"],
    )
    assert send("PUT", f"{LIKE}?on=1", token=token, folder="api/reactions").status == 400
    assert send("PUT", LIKE, token=token, folder="api/reactions").body["likes"] == 1


def test_a_path_without_an_id_is_404_whatever_the_query(plaza: World) -> None:
    reply = send("GET", "/posts/abc?verbose=1", folder="api/content")
    assert (reply.status, reply.problem) == (404, "not-found")


def test_the_errors_of_unknown_parameters_are_bounded(plaza: World) -> None:
    query = "&".join(f"p{number}=1" for number in range(100))
    for path, folder in (("/posts/11", "api/content"), ("/posts/11/likers", "api/reactions")):
        assert len(send("GET", f"{path}?{query}", folder=folder).body["errors"]) == 20


# ---------------------------------------------------------------- HEAD


@pytest.mark.parametrize("route", READS, ids=lambda route: route.name)
def test_head_is_answered_as_get_without_a_body(plaza: World, route: Route) -> None:
    plaza.add(POST, Target("comment", 11))
    query = {"/posts": "ids=11", "/users": "ids=7", "/shops": "x=13.4&y=52.5"}.get(route.path, "")
    if route.path == "/shops/search":
        query = "name=Shop"
    authorization = f"Bearer {sign_in(route)}"
    sent: list[Reply] = []
    for method in ("GET", "HEAD"):
        item = route._replace(method=method)
        sent += [item.call(authorization, query=query), item.call(None, query=query)]
    for of_get, of_head in zip(sent[:2], sent[2:], strict=True):
        assert of_get.body is not None
        assert (of_head.status, of_head.body) == (of_get.status, None)
        varying = {"ratelimit", "etag"}  # a body can have the time
        assert without(of_head.headers, varying) == without(of_get.headers, varying)
        assert ("etag" in of_head.headers) == ("etag" in of_get.headers)
    if route.path != "/nowhere":
        assert sent[2].status != 405


def without(headers: Any, names: set[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}


def test_head_has_the_tag_and_the_304_of_get(plaza: World) -> None:
    plaza.add(POST)
    path = "/openapi.json"
    tag = send("GET", path, folder="api/system").headers["etag"]
    assert send("HEAD", path, folder="api/system").headers["etag"] == tag
    seen = {"if-none-match": tag, "accept-encoding": "gzip"}
    assert send("HEAD", path, headers=seen, folder="api/system").status == 304


def test_head_of_a_compressed_response_is_empty_text(plaza: World) -> None:
    request = event("system.get_contract")
    request["headers"]["accept-encoding"] = "gzip"
    request["routeKey"] = "HEAD /openapi.json"
    request["requestContext"]["http"]["method"] = "HEAD"
    answer = handler("api/system")(request, None)
    assert answer["headers"]["content-encoding"] == "gzip"
    assert (answer["body"], answer["isBase64Encoded"]) == ("", False)


def test_head_of_a_path_without_get_is_a_405(plaza: World) -> None:
    request = event("system.wrong_method")
    request["requestContext"]["http"]["method"] = "HEAD"
    answer = handler("api/system")(request, None)
    assert (answer["statusCode"], answer["headers"]["allow"]) == (405, "DELETE, PUT")


@pytest.mark.parametrize("route", READS, ids=lambda route: route.name)
def test_head_behind_a_load_balancer_is_answered_as_get(plaza: World, route: Route) -> None:
    path = fill_path(route.path)
    answers = []
    for method in ("GET", "HEAD"):
        request = make_balancer_event(Request(method, path, {"host": "a"}, (), b"", HOME))
        answers.append(handler(route.folder)(request, None))
    assert answers[1]["statusCode"] == answers[0]["statusCode"] != 405
    assert answers[0]["body"]
    assert answers[1]["body"] == ""


def test_a_head_counts_as_a_read(plaza: World, set_up: Callable[..., None]) -> None:
    token = sign_in()
    set_up(reads_per_s=0.001, reads_burst=2)
    statuses = [send("HEAD", "/users/me", token=token, folder="api/users").status for _ in range(3)]
    assert statuses == [200, 200, 429]


# ---------------------------------------------------------------- the headers of rate limits


def limits_of(reply: Reply) -> tuple[str | None, str | None]:
    return reply.headers.get("ratelimit-policy"), reply.headers.get("ratelimit")


def test_a_response_has_what_is_left_of_the_rate_limit(
    plaza: World, set_up: Callable[..., None]
) -> None:
    plaza.add(POST)
    token = sign_in()
    set_up(
        reads_per_s=0.05, reads_burst=10, writes_per_s=0.01, writes_burst=3,
        anonymous_per_s=0.02, anonymous_burst=100,
    )  # fmt: skip
    me = [send("GET", "/users/me", token=token, folder="api/users") for _ in range(2)]
    assert [left(reply) for reply in me] == [(9, 20), (8, 40)]
    liked = send("PUT", LIKE, token=token, folder="api/reactions")
    assert left(liked) == (2, 100)
    public = send("GET", "/openapi.json", folder="api/system")
    assert left(public) == (98, 100), "the first request with an unknown token counted here"
    missing = send("GET", "/nowhere", folder="api/system")
    assert (missing.status, left(missing)) == (404, (97, 150))
    refused = send("GET", "/users/me", folder="api/users")
    assert (refused.status, left(refused)) == (401, (96, 200))
    policies = [reply.headers["ratelimit-policy"] for reply in (me[0], liked, public)]
    assert policies == ['"default";q=10;w=200', '"default";q=3;w=300', '"default";q=100;w=5000']


def left(reply: Reply) -> tuple[int, int]:
    """Return (requests that are left, seconds until all of them are, rounded to tens)."""
    match = re.fullmatch(r'"default";r=(\d+);t=(\d+)', reply.headers["ratelimit"])
    assert match
    return int(match[1]), round(int(match[2]), -1)


@pytest.mark.parametrize("route", LIMITED, ids=lambda route: route.name)
def test_each_limited_route_has_the_headers(plaza: World, route: Route) -> None:
    for authorization in (None, f"Bearer {sign_in(route)}"):
        reply = route.call(authorization)
        if reply.headers["cache-control"].startswith("public"):
            continue
        assert all(limits_of(reply)), (authorization, reply.status)


@pytest.mark.parametrize("signed_in", [True, False])
def test_a_limited_response_has_none_left_until_after_its_retry_after(
    plaza: World, signed_in: bool
) -> None:
    token = sign_in() if signed_in else None
    send("GET", "/users/me", token=token, folder="api/users")
    bucket = bucket_of_user(7, "GET /users/me") if signed_in else anonymous_bucket(HOME)
    empty(bucket, wait_s=6.5)
    reply = send("GET", "/users/me", token=token, folder="api/users")
    assert reply.status == 429
    policy, left = limits_of(reply)
    full_s = 6.5 + (bucket.burst - 1) / bucket.per_s
    window_s = int(bucket.burst / bucket.per_s)
    assert policy == f'"default";q={bucket.burst};w={window_s}'
    name, remaining, until_full = str(left).split(";")
    assert (name, remaining) == ('"default"', "r=0")
    assert full_s - 1 < int(until_full.removeprefix("t=")) <= full_s + 1
    assert int(until_full.removeprefix("t=")) >= int(reply.headers["retry-after"])


def test_a_response_has_no_rate_limit_while_redis_is_unavailable(
    plaza: World, redis_away: Away
) -> None:
    token = sign_in()
    send("GET", "/users/me", token=token, folder="api/users")
    with redis_away():
        for sent in (token, None, "malformed"):
            reply = send("GET", "/users/me", token=sent, folder="api/users")
            assert limits_of(reply) == (None, None)


def test_a_limit_of_another_kind_has_only_its_retry_after(plaza: World) -> None:
    plaza.add(POST)
    token = sign_in()
    status, count = 200, 0
    while status == 200:
        method = ("PUT", "DELETE")[count % 2]
        reply = send(method, LIKE, token=token, folder="api/reactions")
        status, count = reply.status, count + 1
        assert count < 40
    assert (status, "retry-after" in reply.headers) == (429, True)
    assert limits_of(reply) == (None, None)


def test_health_is_not_limited_and_takes_any_query(plaza: World) -> None:
    reply = send("GET", "/health?at=7", folder="api/system")
    assert (reply.status, reply.body, limits_of(reply)) == (200, {"status": "up"}, (None, None))
