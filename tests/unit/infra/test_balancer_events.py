"""Requests of a load balancer: the same answers as behind API Gateway, and hostile ones."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pytest

from local.stack.functions import CONTEXT, load_open_function
from local.stack.gateway import Cors, Request, make_event
from plaza.infra.http import balancer_events
from plaza.infra.http.balancer_events import MAX_RESPONSE_BYTES, to_gateway_event
from plaza.infra.http.callers import Caller
from plaza.infra.http.requests import Id
from plaza.infra.http.resolver import PlazaResolver
from plaza.infra.http.responses import PROBLEM_TYPES, SECURITY_HEADERS
from plaza.infra.http.routes import OPTIONAL, PUBLIC
from plaza.infra.http.schemas import Ids, RequestModel
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import reset_process
from tests.support.balancer import TRACE_ID, make_balancer_event
from tests.support.routes import find_match
from tests.unit.infra.test_settings import GOOD, set_only
from tests.unit.policy import template
from tests.unit.policy.test_contract import OPERATIONS, Operation, resolve

CLIENT = "203.0.113.7"
ORIGIN = "https://app.example.com"


@pytest.fixture(autouse=True)
def origins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """``origins("https://a.example")``: the settings of a function behind a load balancer."""

    def allow(value: str) -> None:
        set_only(monkeypatch, GOOD | {"PLAZA_ALLOWED_ORIGINS": value})
        reset_process()

    allow("*")
    yield allow
    reset_process()


class Thing(RequestModel):
    number: int


app = PlazaResolver(lambda header, address, route: Caller(wait_ms=5_000 if address == "" else 0))


@app.get("/things/<thing_id>", security=PUBLIC)
def get_thing(thing_id: Id) -> dict[str, str]:
    return {"id": thing_id}


@app.get("/things/newest", security=PUBLIC)
def get_newest() -> dict[str, str]:
    return {"id": "newest", "address": app.client_ip}


@app.get("/things", security=OPTIONAL)
def list_things(ids: Ids) -> dict[str, list[str]]:
    return {"ids": ids}


@app.put("/things/<thing_id>", security=PUBLIC)
def put_thing(thing_id: Id, request: Thing) -> dict[str, int]:
    return {"number": request.number}


@app.get("/large/<size>", security=PUBLIC)
def get_large(size: Id) -> dict[str, str]:
    return {"text": "a" * int(size)}


def event(method: str, target: str, body: bytes = b"", **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {"host": "api.example.com", "content-type": "application/json", **named}
    return make_balancer_event(Request(method, target, sent, (), body, CLIENT))


def answer(sent: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
    response = app.resolve(sent, None)
    assert set(response) == {"statusCode", "multiValueHeaders", "body", "isBase64Encoded"}
    assert len(json.dumps(response, ensure_ascii=False).encode()) <= MAX_RESPONSE_BYTES
    headers = {name: value for name, [value] in response["multiValueHeaders"].items()}
    return response["statusCode"], json.loads(response["body"] or "null"), headers


# ---------------------------------------------------------------- as API Gateway


def make_request(operation: Operation) -> Request:
    """A request of the contract, with its example as the body and a query that needs decoding."""
    body = b""
    for name, _, content in operation.bodies:
        if name == "request":
            examples = content.get("examples", {}).values()
            schema = resolve(content["schema"])
            value = resolve(next(iter(examples)))["value"] if examples else schema["examples"][0]
            body = json.dumps(value).encode()
    parameters = operation.spec.get("parameters", [])
    query = "&".join(f"{p['name']}=%37+a&{p['name']}=b" for p in parameters if p["in"] == "query")
    path = operation.path
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", "1%37")
    headers = {
        "content-type": "application/json",
        "authorization": "Bearer token",
        "idempotency-key": "k-1",
        "x-forwarded-for": "192.0.2.1, 192.0.2.2",
    }
    target = path + (f"?{query}" if query else "")
    return Request(operation.method.upper(), target, headers, (), body, CLIENT)


@cache
def app_of(function: str) -> PlazaResolver:
    module = load_open_function("/".join(template.folder_of(function).parts[-2:]))
    result: PlazaResolver = module.app
    return result


READ = ("routeKey", "rawPath", "pathParameters", "queryStringParameters", "body", "isBase64Encoded")
"""Fields of an event that functions read, without the headers."""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda item: item.id)
def test_a_request_of_the_contract_is_the_same_event(operation: Operation) -> None:
    function = template.routes()[operation.method.upper(), operation.path]
    request = make_request(operation)
    match = find_match(request.method, request.target.partition("?")[0])
    of_gateway = make_event(request, match, api_id="a", account="1", now_s=clock.now_s())
    result = to_gateway_event(tuple(app_of(function).endpoints), make_balancer_event(request))
    for name in READ:
        assert (result[name] or None) == (of_gateway.get(name) or None), name
    for name in request.headers:
        assert result["headers"][name] == of_gateway["headers"][name]
    http = of_gateway["requestContext"]["http"]
    assert result["requestContext"]["http"] == {"method": http["method"], "sourceIp": CLIENT}
    assert match.route.key == f"{operation.method.upper()} {operation.path}"


def test_a_name_in_a_path_comes_before_an_id() -> None:
    assert answer(event("GET", "/things/newest"))[1]["id"] == "newest"
    assert answer(event("GET", "/things/7"))[1] == {"id": "7"}


def test_head_is_the_route_of_get_without_a_body() -> None:
    assert answer(event("HEAD", "/things/7"))[:2] == (200, None)
    assert (
        to_gateway_event(tuple(app.endpoints), event("HEAD", "/things/7"))["routeKey"]
        == "HEAD /things/{thing_id}"
    )
    assert answer(event("HEAD", "/nothing"))[:2] == (404, None)


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("PATCH", "/things/7", 405, "GET, HEAD, PUT"),
        ("POST", "/things", 405, "GET, HEAD"),
        ("GET", "/things/7/", 404, None),
        ("GET", "/nothing", 404, None),
        ("GET", "/things/7/parts", 404, None),
        ("GET", "/things//", 404, None),
        ("GET", "//things/7", 404, None),
        ("GET", "", 404, None),
    ],
)
def test_other_methods_and_paths_are_refused_by_the_function_that_gets_them(
    method: str, path: str, status: int, allow: str | None
) -> None:
    result, _, headers = answer(event(method, path))
    assert (result, headers.get("allow")) == (status, allow)


@pytest.mark.parametrize("segment", ["%2537", "%25%37", "7%00", "7%2F8", "%ff", "%", "%zz", "７"])
def test_an_escaped_segment_is_decoded_once_and_is_no_id(segment: str) -> None:
    assert answer(event("GET", f"/things/{segment}"))[0] == 404


def test_equal_names_in_a_query_are_joined() -> None:
    assert answer(event("GET", "/things?ids=1&ids=2,3&i%64s=%34"))[1] == {
        "ids": ["1", "2", "3", "4"]
    }
    assert answer(event("GET", "/things?ids=1&ids="))[0] == 400
    assert answer(event("GET", "/things?ids=%2531"))[0] == 400
    assert answer(event("GET", "/things"))[0] == 400


def test_a_body_is_text_or_base64() -> None:
    assert answer(event("PUT", "/things/7", b'{"number": 3}'))[1] == {"number": 3}
    sent = event("PUT", "/things/7", b"{}") | {"body": "eyJudW1iZXIiOiA0fQ=="}
    assert answer(sent | {"isBase64Encoded": True})[1] == {"number": 4}
    assert answer(event("PUT", "/things/7", b'{"number": 3}', content_type="image/png"))[0] == 400


@pytest.mark.parametrize("body", ["e", "eyJ", "=", "/w==", "é", "{}"])
def test_what_is_not_base64_of_json_is_a_400(body: str) -> None:
    sent = event("PUT", "/things/7") | {"body": body, "isBase64Encoded": True}
    assert answer(sent)[0] == 400


def test_an_event_without_headers_and_query_is_answered() -> None:
    sent = event("GET", "/things/7")
    for name in ("multiValueHeaders", "multiValueQueryStringParameters", "body"):
        assert answer(sent | {name: None})[0] in {200, 429}
        assert answer({k: v for k, v in sent.items() if k != name})[0] in {200, 429}


# ---------------------------------------------------------------- the client


@pytest.mark.parametrize("forged", ["198.51.100.1", "198.51.100.1, 10.0.0.1", ",", " ", "x" * 999])
def test_a_client_does_not_choose_its_address(forged: str) -> None:
    assert answer(event("GET", "/things/newest", x_forwarded_for=forged))[1]["address"] == CLIENT


def test_requests_with_several_such_headers_or_none_share_one_limit() -> None:
    sent = event("GET", "/things/newest")
    for lines in ([], ["198.51.100.1", CLIENT], [CLIENT, "198.51.100.1"]):
        sent["multiValueHeaders"]["x-forwarded-for"] = lines
        assert answer(sent)[0] == 429


@pytest.mark.parametrize(
    ("trace", "id_"),
    [
        (f"Root={TRACE_ID}", TRACE_ID),
        (f"Self={TRACE_ID};Root=1-67891233-000000000000000000000000", TRACE_ID),
        (f"Root=1-chosen;Self={TRACE_ID}", TRACE_ID),
        ("Root=a b\n", None),
        ("Root", None),
        ("", None),
    ],
)
def test_the_request_id_is_that_of_the_access_log(trace: str, id_: str | None) -> None:
    sent = event("GET", "/things/7")
    sent["multiValueHeaders"]["x-amzn-trace-id"] = [trace]
    assert answer(sent)[2].get("x-request-id") == id_
    sent["multiValueHeaders"]["x-request-id"] = ["my-request-1"]
    assert answer(sent)[2]["x-request-id"] == "my-request-1"


def test_a_compressed_response_is_sent_as_base64() -> None:
    response = app.resolve(event("GET", "/large/5000", accept_encoding="gzip"), None)
    assert response["multiValueHeaders"]["content-encoding"] == ["gzip"]
    assert response["isBase64Encoded"] is True
    content = gzip.decompress(base64.b64decode(response["body"]))
    assert json.loads(content) == {"text": "a" * 5_000}


# ---------------------------------------------------------------- CORS

CONFIGURED = template.TEMPLATE["Resources"]["Api"]["Properties"]["CorsConfiguration"]


@pytest.mark.parametrize("allowed", ["*", ORIGIN, f"https://b.example,{ORIGIN.upper()}"])
@pytest.mark.parametrize("origin", [ORIGIN, "https://evil.example", "null", None])
def test_the_headers_of_cors_are_those_of_api_gateway(
    origins: Callable[[str], None], allowed: str, origin: str | None
) -> None:
    origins(allowed)
    cors = Cors({**CONFIGURED, "AllowOrigins": allowed.split(",")})
    sent = partial(event, origin=origin) if origin is not None else event
    status, body, result = answer(sent("OPTIONS", "/things/7"))
    assert (status, body) == (204, None)
    assert result == {**dict(cors.answer_preflight(origin).headers), **SECURITY_HEADERS}
    status, _, result = answer(sent("GET", "/things/7"))
    assert status == 200
    expected = dict(cors.headers(origin)) if origin is not None else {}
    vary = "authorization, accept-encoding" + (", Origin" if "vary" in expected else "")
    assert {n: v for n, v in result.items() if n in expected} == {
        **expected,
        **({"vary": vary} if "vary" in expected else {}),
    }
    assert result["vary"] == vary
    assert ("access-control-allow-origin" in result) == bool(expected)


def test_a_preflight_is_not_limited_and_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    sent = event("OPTIONS", "/things/7", origin=ORIGIN)
    sent["multiValueHeaders"]["x-forwarded-for"] = []
    assert answer(sent)[0] == 204
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------- sizes


def test_a_response_that_the_load_balancer_refuses_is_a_400() -> None:
    assert answer(event("GET", "/large/990000"))[0] == 200
    for size in (999_500, 2_000_000):
        status, body, headers = answer(event("GET", f"/large/{size}", origin=ORIGIN))
        assert (status, body["type"]) == (400, PROBLEM_TYPES + "invalid-request")
        assert "ask for fewer" in body["detail"]
        assert headers["cache-control"] == "no-store"
        assert "etag" not in headers
        assert SECURITY_HEADERS.items() <= headers.items()
        assert headers["access-control-allow-origin"] == "*"
        assert headers["x-request-id"] == TRACE_ID


def test_the_health_check_of_a_load_balancer_is_a_constant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = load_open_function("api/system").handler
    health = handler(event("GET", "/health", origin=ORIGIN), CONTEXT)
    assert (health["statusCode"], json.loads(health["body"])) == (200, {"status": "up"})
    assert health["multiValueHeaders"]["access-control-allow-origin"] == ["*"]
    again = handler(event("GET", "/health"), CONTEXT)
    assert "access-control-allow-origin" not in again["multiValueHeaders"]
    assert capsys.readouterr().out == ""


def test_the_limits_of_methods_and_headers_are_those_of_the_template() -> None:
    assert ",".join(CONFIGURED["AllowMethods"]) == balancer_events.ALLOWED_METHODS
    assert ",".join(CONFIGURED["AllowHeaders"]) == balancer_events.ALLOWED_HEADERS
    assert ",".join(CONFIGURED["ExposeHeaders"]) == balancer_events.EXPOSED_HEADERS
    assert CONFIGURED["MaxAge"] == balancer_events.PREFLIGHT_MAX_AGE_S
