"""Requests of an Application Load Balancer, answered as requests of API Gateway are.

The load balancer matches a path to a function (deploy/balancer-rules.json) and does no more. What
API Gateway does besides is done here: it finds the route and its parameters, answers preflights and
adds the headers of CORS. Its target groups have multi-value headers on: without them it drops all
but the last of several equal names.

A process imports this module at its first request of a load balancer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import unquote, unquote_plus

from plaza.infra.http.requests import Event, fits
from plaza.infra.http.responses import SECURITY_HEADERS, problem, render
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.settings import settings

MAX_RESPONSE_BYTES = 1_000_000
"""Size of the JSON that a function may return to a load balancer."""

_MAX_BYTES_PER_CHAR = 7  # a control character in a JSON text in JSON: \\u0000
_HEADER_BYTES = 2_000  # what CORS and the form of the headers add
_UNROUTED = "$default"

# As CorsConfiguration in template.yaml; a policy test compares them.
ALLOWED_METHODS = "GET,POST,PUT,PATCH,DELETE"
ALLOWED_HEADERS = (
    "authorization,content-type,idempotency-key,if-match,if-none-match,x-request-id,x-visitor-id"
)
EXPOSED_HEADERS = (
    "age,deprecation,etag,link,location,ratelimit,ratelimit-policy,retry-after,sunset,"
    "www-authenticate,x-request-id"
)
PREFLIGHT_MAX_AGE_S = 600

Handler = Callable[[Event, object], dict[str, Any]]
Response = dict[str, Any]
Routes = tuple[str, ...]
"""The names of a function's routes, such as ``GET /posts/{post_id}``."""


def serve(routes: Routes, event: Event, context: object, handler: Handler) -> Response:
    """Return the response of ``handler``, which gets the request in the form of API Gateway's."""
    request = to_gateway_event(routes, event)
    cors = _allow_origin(request["headers"].get("origin"))
    if event["httpMethod"] == "OPTIONS":
        headers = {**_preflight(cors), **SECURITY_HEADERS}
        return _to_balancer_response({"statusCode": 204, "headers": headers, "body": ""})
    response = _limit_size(handler(request, context))
    headers = {**response["headers"], **cors, **SECURITY_HEADERS}
    if "vary" in cors and "vary" in response["headers"]:
        headers["vary"] = f"{response['headers']['vary']}, {cors['vary']}"
    return _to_balancer_response({**response, "headers": headers})


def to_gateway_event(routes: Routes, event: Event) -> Event:
    """Return what functions read of the event that API Gateway sends for the same request."""
    method, path = event["httpMethod"], event["path"]
    key, parameters = _find_route(routes, method, path)
    sent = event.get("multiValueHeaders") or {}
    headers = {name.lower(): ",".join(values) for name, values in sent.items()}
    return {
        "routeKey": key,
        "rawPath": unquote(path, errors="replace"),
        "headers": headers,
        "queryStringParameters": _decode_query(event.get("multiValueQueryStringParameters")),
        "pathParameters": parameters,
        "requestContext": {
            "http": {"method": method, "sourceIp": _read_address(sent)},
            "requestId": _read_trace_id(headers.get("x-amzn-trace-id", "")),
        },
        "body": event.get("body"),
        "isBase64Encoded": event.get("isBase64Encoded", False),
    }


def _find_route(routes: Routes, method: str, path: str) -> tuple[str, dict[str, str]]:
    segments = path.split("/")
    for key, pattern in _patterns_of(routes).get((method, len(segments)), ()):
        if fits(pattern, segments):
            pairs = zip(pattern, segments, strict=True)
            return key, {p[1:-1]: unquote(s, errors="replace") for p, s in pairs if p[:1] == "{"}
    return _UNROUTED, {}


@cache
def _patterns_of(routes: Routes) -> Mapping[tuple[str, int], Sequence[tuple[str, list[str]]]]:
    """Return the routes by method and number of segments; a name before an ``{id}``."""
    patterns: dict[tuple[str, int], list[tuple[str, list[str]]]] = {}
    for key in sorted(routes):
        method, _, path = key.partition(" ")
        pattern = path.split("/")
        patterns.setdefault((method, len(pattern)), []).append((key, pattern))
        if method == "GET":
            patterns.setdefault(("HEAD", len(pattern)), []).append((f"HEAD {path}", pattern))
    return patterns


def _decode_query(sent: Mapping[str, Sequence[str]] | None) -> dict[str, str]:
    """Return the decoded parameters; the load balancer sends them as they are in the URL."""
    parameters: dict[str, str] = {}
    for name, values in (sent or {}).items():
        name = unquote_plus(name, errors="replace")
        decoded = [unquote_plus(value, errors="replace") for value in values]
        parameters[name] = ",".join([parameters[name], *decoded] if name in parameters else decoded)
    return parameters


def _read_address(headers: Mapping[str, Sequence[str]]) -> str:
    """Return the address of the connection, which the load balancer appends to what a client sent.

    Empty, so that their senders share one rate limit, for requests with several such headers: to
    which of them it appended is not documented.
    """
    sent = headers.get("x-forwarded-for", ())
    return sent[0].rpartition(",")[2].strip() if len(sent) == 1 else ""


def _read_trace_id(header: str) -> str:
    """Return the load balancer's id of a request: ``Self`` if the client sent ``Root``."""
    fields = dict(part.split("=", 1) for part in header.split(";") if "=" in part)
    return fields.get("Self") or fields.get("Root", "")


def _allow_origin(origin: str | None) -> dict[str, str]:
    """Return the headers for an origin, none for one that is not allowed."""
    allowed = settings().allowed_origins
    if origin is None or not allowed & {"*", origin.lower()}:
        return {}
    headers = {"access-control-expose-headers": EXPOSED_HEADERS}
    if "*" in allowed:
        return headers | {"access-control-allow-origin": "*"}
    return headers | {"access-control-allow-origin": origin, "vary": "Origin"}


def _preflight(cors: dict[str, str]) -> dict[str, str]:
    if not cors:
        return {}
    return cors | {
        "access-control-allow-methods": ALLOWED_METHODS,
        "access-control-allow-headers": ALLOWED_HEADERS,
        "access-control-max-age": str(PREFLIGHT_MAX_AGE_S),
    }


def _limit_size(response: Response) -> Response:
    """Return a 400 instead of a response that the load balancer would answer 502 for."""
    if len(response["body"]) * _MAX_BYTES_PER_CHAR <= MAX_RESPONSE_BYTES:
        return response
    size = len(json.dumps(response, ensure_ascii=False).encode("utf-8", "replace"))
    if size <= MAX_RESPONSE_BYTES - _HEADER_BYTES:
        return response
    detail = "the response is above 1 MB; ask for fewer items"
    refused = render(problem(BadInput("limit", detail, code="too-large", path="query.limit")))
    if "x-request-id" in response["headers"]:
        refused["headers"]["x-request-id"] = response["headers"]["x-request-id"]
    refused["headers"]["cache-control"] = "no-store"
    return refused


def _to_balancer_response(response: Response) -> Response:
    return {
        "statusCode": response["statusCode"],
        "multiValueHeaders": {name: [value] for name, value in response["headers"].items()},
        "body": response["body"],
        "isBase64Encoded": response.get("isBase64Encoded", False),
    }
