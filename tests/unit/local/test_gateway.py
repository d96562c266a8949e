"""Events and responses of the HTTP API equal API Gateway's.

RECORDED is the event of a deployed HTTP API (curl), its values replaced; PROXY is from AWS's
reference for payload format 2.0.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from cli.paths import CommandError
from local.stack.gateway import (
    Cors,
    Gateway,
    Match,
    Reply,
    Request,
    Routes,
    decode_path,
    format_time,
    make_event,
    read_headers,
    read_outcome,
)
from local.stack.routes import Route
from local.stack.workers import Outcome, Pool

URI = "arn:aws:apigateway:x:lambda:path/functions/arn:aws:lambda:x:1:function:{}/invocations"
LIKES = URI.format("likes")

RECORDED: dict[str, Any] = {
    "version": "2.0",
    "routeKey": "ANY /reads/{id}",
    "rawPath": "/reads/7",
    "rawQueryString": "",
    "headers": {
        "accept": "*/*",
        "authorization": "Bearer token",
        "content-length": "0",
        "host": "reads.example.org",
        "user-agent": "curl/7.69.1",
        "x-amzn-trace-id": "Root=1-600f56db-41dc5dac31f68e8253bbb29a",
        "x-forwarded-for": "192.0.2.7",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    },
    "pathParameters": {"id": "7"},
    "requestContext": {
        "accountId": "123456789012",
        "apiId": "abc",
        "domainName": "reads.example.org",
        "domainPrefix": "reads",
        "http": {
            "method": "GET",
            "path": "/reads/7",
            "protocol": "HTTP/1.1",
            "sourceIp": "192.0.2.7",
            "userAgent": "curl/7.69.1",
        },
        "requestId": "ZuqGrHudSwMEP4w=",
        "routeKey": "ANY /reads/{id}",
        "stage": "$default",
        "time": "25/Jan/2021:23:40:11 +0000",
        "timeEpoch": 1611618011254,
    },
    "isBase64Encoded": False,
}

PROXY: dict[str, Any] = {
    "version": "2.0",
    "routeKey": "$default",
    "rawPath": "/my/path",
    "rawQueryString": "parameter1=value1&parameter1=value2&parameter2=value",
    "cookies": ["cookie1", "cookie2"],
    "headers": {"header1": "value1", "header2": "value1,value2"},
    "queryStringParameters": {"parameter1": "value1,value2", "parameter2": "value"},
    "requestContext": {
        "http": {
            "method": "POST",
            "path": "/my/path",
            "protocol": "HTTP/1.1",
            "sourceIp": "192.0.2.1",
            "userAgent": "agent",
        },
        "routeKey": "$default",
        "stage": "$default",
        "time": "12/Mar/2020:19:03:58 +0000",
        "timeEpoch": 1584039838390,
    },
    "body": "Hello from Lambda",
    "isBase64Encoded": False,
}


def request(method: str = "GET", target: str = "/", **given: Any) -> Request:
    parts: dict[str, Any] = {"headers": {}, "cookies": [], "body": b"", "source_ip": "192.0.2.1"}
    return Request(method, target, **{**parts, **given})


def event_of(sent: Request, key: str = "$default", **parameters: str) -> dict[str, Any]:
    match = Match(Route(key, LIKES, "2.0"), parameters)
    return make_event(sent, match, api_id="abc", account="123456789012", now_s=1611618011.254)


def shape(value: Any) -> Any:
    """Return the names in a document and the types of its values."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    return type(value).__name__


def test_function_event_equals_the_recorded_one() -> None:
    headers = {
        name: value for name, value in RECORDED["headers"].items() if not name.startswith("x-")
    }
    sent = request("GET", "/reads/7", headers=headers, source_ip="192.0.2.7")
    made = event_of(sent, "ANY /reads/{id}", id="7")
    assert shape(made) == shape(RECORDED)
    drawn = {"requestId", "x-amzn-trace-id", "x-forwarded-port", "x-forwarded-proto"}
    for part in ("headers", "requestContext"):
        for name in set(RECORDED[part]) - drawn:
            assert made[part][name] == RECORDED[part][name]
    for name in set(RECORDED) - {"headers", "requestContext"}:
        assert made[name] == RECORDED[name]


def test_function_event_equals_the_reference() -> None:
    headers, cookies, _ = read_headers(
        [
            ("Header1", "value1"),
            ("Header2", "value1"),
            ("header2", "value2"),
            ("User-Agent", "agent"),
            ("Content-Type", "text/plain"),
            ("Cookie", "cookie1; cookie2"),
        ]
    )
    made = event_of(
        request(
            "POST",
            f"/my/path?{PROXY['rawQueryString']}",
            headers=headers,
            cookies=cookies,
            body=b"Hello from Lambda",
        )
    )
    context = PROXY["requestContext"]
    assert made["requestContext"]["http"] == context["http"]
    assert {name: made["headers"][name] for name in PROXY["headers"]} == PROXY["headers"]
    assert "cookie" not in made["headers"]
    for name in set(PROXY) - {"headers", "requestContext"}:
        assert made[name] == PROXY[name]


def test_absent_parts_of_a_request_are_absent_from_its_event() -> None:
    made = event_of(request())
    assert {"body", "cookies", "queryStringParameters", "pathParameters"}.isdisjoint(made)
    assert made["isBase64Encoded"] is False


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        ("application/json; charset=utf-8", True),
        ("text/csv", True),
        ("application/x-www-form-urlencoded", False),
        ("application/octet-stream", False),
        ("", False),
    ],
)
def test_body_is_text_only_for_text_types(content_type: str, text: bool) -> None:
    made = event_of(request("POST", headers={"content-type": content_type}, body=b"{}"))
    assert made["isBase64Encoded"] is not text
    assert made["body"] == ("{}" if text else base64.b64encode(b"{}").decode())


def test_forwarded_address_precedes_the_source_address() -> None:
    made = event_of(request(headers={"x-forwarded-for": "198.51.100.9"}))
    assert made["headers"]["x-forwarded-for"] == "198.51.100.9, 192.0.2.1"
    assert made["requestContext"]["http"]["sourceIp"] == "192.0.2.1"


def test_escapes_of_a_path_are_decoded_except_percent() -> None:
    assert decode_path("/a%20b/%F0%9F%98%80") == "/a b/\U0001f600"
    assert decode_path("/a%252Eb") == "/a%252Eb"
    assert decode_path("/plain") == "/plain"


def test_time_is_written_as_in_an_access_log() -> None:
    assert format_time(1584039838.39) == PROXY["requestContext"]["time"]


def test_headers_are_latin_1_and_their_size_is_known() -> None:
    raw = "Bearer é".encode("latin-1").decode("utf-8", "surrogateescape")
    headers, _, size = read_headers([("Authorization", raw)])
    assert headers == {"authorization": "Bearer é"}
    assert size == len("Authorization") + len(raw) + 4


def table(*keys: str) -> Routes:
    return Routes(Route(key, key, "2.0") for key in keys)


@pytest.mark.parametrize(
    ("method", "path", "key", "parameters"),
    [
        ("GET", "/users/me", "GET /users/me", {}),
        ("GET", "/users/7", "GET /users/{id}", {"id": "7"}),
        ("PUT", "/users/a%2Fb", "ANY /users/{id}", {"id": "a/b"}),
        ("GET", "/users/7/posts", "GET /users/{id}/posts", {"id": "7"}),
        ("GET", "/users/", "$default", {}),
        ("GET", "/users/7/", "$default", {}),
        ("POST", "/nothing", "$default", {}),
    ],
)
def test_most_specific_route_serves(
    method: str, path: str, key: str, parameters: dict[str, str]
) -> None:
    routes = table(
        "$default", "ANY /users/{id}", "GET /users/{id}", "GET /users/me", "GET /users/{id}/posts"
    )
    result = routes.find(method, path)
    assert result is not None
    assert (result.route.key, result.parameters) == (key, parameters)


def test_path_without_a_route_has_no_match() -> None:
    assert table("GET /a").find("GET", "/b") is None


@pytest.mark.parametrize("route", [Route("GET /a", LIKES, "1.0"), Route("GET /{a+}", LIKES, "2.0")])
def test_unsupported_route_is_refused_at_the_start(route: Route) -> None:
    with pytest.raises(CommandError, match="GET /"):
        Routes([route])


def outcome(document: Any, *, failed: bool = False) -> Outcome:
    return Outcome(json.dumps(document).encode(), failed=failed)


def test_function_sets_status_headers_cookies_and_body() -> None:
    reply = read_outcome(
        outcome(
            {
                "statusCode": 201,
                "headers": {"Content-Type": "application/json", "X-Count": 3},
                "cookies": ["a=1", "b=2"],
                "body": base64.b64encode(b"\x00\xff").decode(),
                "isBase64Encoded": True,
            }
        )
    )
    assert reply.status == 201
    assert list(reply.headers) == [
        ("content-type", "application/json"),
        ("x-count", "3"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
    ]
    assert reply.body == b"\x00\xff"


def test_result_without_a_status_is_the_body() -> None:
    assert read_outcome(outcome({"a": 1})) == Reply(
        200, [("content-type", "application/json")], b'{"a": 1}'
    )


def test_error_of_a_function_is_hidden_from_clients() -> None:
    reply = read_outcome(outcome({"errorMessage": "secret", "errorType": "X"}, failed=True))
    assert (reply.status, json.loads(reply.body)) == (500, {"message": "Internal Server Error"})


@pytest.mark.parametrize(
    "document",
    [
        {"statusCode": "many"},
        {"statusCode": None},
        {"statusCode": 200, "headers": ["a"]},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "body": "x", "isBase64Encoded": True},
    ],
)
def test_malformed_result_is_an_error(document: dict[str, Any]) -> None:
    pool = FakePool(likes=lambda event: outcome(document))
    assert answer(gateway(pool), request(target="/open")).status == 500


def test_function_that_exceeds_the_timeout_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never(FakePool):
        async def invoke(self, name: str, event: bytes) -> Outcome:
            never: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            return await never

    monkeypatch.setattr("local.stack.gateway.MAX_INTEGRATION_S", 0.01)
    reply = answer(gateway(Never()), request(target="/open"))
    assert (reply.status, json.loads(reply.body)) == (503, {"message": "Service Unavailable"})


class FakePool(Pool):
    """Functions by name that run at once; records the events."""

    def __init__(self, **functions: Callable[[Any], Outcome]) -> None:
        self.functions = functions
        self.events: list[tuple[str, Any]] = []

    async def invoke(self, name: str, event: bytes) -> Outcome:
        self.events.append((name, json.loads(event)))
        return self.functions[name](json.loads(event))


def gateway(pool: Pool, cors: dict[str, Any] | None = None) -> Gateway:
    return Gateway("abc", "1", [Route("GET /open", LIKES, "2.0")], cors, pool)


def answer(made: Gateway, sent: Request) -> Reply:
    return asyncio.run(made.answer(sent))


def good(event: Any) -> Outcome:
    return outcome({"statusCode": 200, "body": "good"})


def test_path_without_a_route_is_404() -> None:
    reply = answer(gateway(FakePool()), request(target="/nothing"))
    assert (reply.status, json.loads(reply.body)) == (404, {"message": "Not Found"})


CORS = {
    "AllowOrigins": ["https://a.example"],
    "AllowMethods": ["GET", "PUT"],
    "AllowHeaders": ["authorization"],
    "ExposeHeaders": ["retry-after"],
    "MaxAge": 600,
}


def test_preflight_is_answered_without_a_function() -> None:
    pool = FakePool()
    sent = request("OPTIONS", "/open", headers={"origin": "https://a.example"})
    reply = answer(gateway(pool, CORS), sent)
    assert (reply.status, pool.events) == (204, [])
    assert dict(reply.headers) == {
        "access-control-allow-origin": "https://a.example",
        "vary": "Origin",
        "access-control-expose-headers": "retry-after",
        "access-control-allow-methods": "GET,PUT",
        "access-control-allow-headers": "authorization",
        "access-control-max-age": "600",
    }


def test_origin_that_is_not_allowed_gets_no_headers() -> None:
    assert Cors(CORS).answer_preflight("https://b.example") == Reply(204, [], b"")
    assert Cors(CORS).headers("https://b.example") == []
    assert Cors({"AllowOrigins": ["*"]}).headers("https://b.example") == [
        ("access-control-allow-origin", "*")
    ]


def test_answer_to_a_browser_names_the_headers_it_may_read() -> None:
    sent = request(target="/open", headers={"origin": "https://a.example"})
    headers = dict(answer(gateway(FakePool(likes=good), CORS), sent).headers)
    assert headers["access-control-expose-headers"] == "retry-after"
    plain = dict(answer(gateway(FakePool(likes=good), CORS), request(target="/open")).headers)
    assert "access-control-expose-headers" not in plain
    assert "apigw-requestid" in plain
