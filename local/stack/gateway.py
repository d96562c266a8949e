"""The HTTP API: from the socket to the worker, in payload format 2.0 of API Gateway.

The events equal recorded ones (tests/unit/local/test_gateway.py). What the template does not use
raises CommandError at start: authorizers, payload format 1.0.
"""

import asyncio
import base64
import json
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from aiohttp import web

from cli.paths import CommandError
from local.stack.routes import Route
from local.stack.workers import Outcome, Pool

STAGE = "$default"
MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_HEADER_BYTES = 10 * 1024
MAX_INTEGRATION_S = 30.0
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TEXTS = ("application/json", "application/xml", "application/javascript")
_PERCENT = re.compile(r"%25", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    cookies: Sequence[str]
    body: bytes
    source_ip: str


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True)
class Match:
    """The route of a request, with its parameters."""

    route: Route
    parameters: Mapping[str, str]


class Routes:
    """The routing table: the most specific route serves a request, ``$default`` the rest."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._default: Route | None = None
        self._fixed: dict[tuple[str, str], Route] = {}
        self._patterns: dict[int, list[tuple[str, list[str], Route]]] = {}
        for route in routes:
            if route.payload_format != "2.0":
                raise CommandError(f"{route.key}: payload format {route.payload_format}, not 2.0")
            if route.key == "$default":
                self._default = route
                continue
            method, path = route.key.split(" ", 1)
            if "+}" in path:
                raise CommandError(f"{route.key}: greedy parameters are not served locally")
            if "{" not in path:
                self._fixed[method, path] = route
                continue
            segments = path.split("/")
            self._patterns.setdefault(len(segments), []).append((method, segments, route))
        for patterns in self._patterns.values():
            patterns.sort(
                key=lambda each: (sum(part[:1] == "{" for part in each[1]), each[0] == "ANY")
            )

    def find(self, method: str, path: str) -> Match | None:
        match = self._find(method, path)
        if match is None and self._default is not None:
            return Match(self._default, {})
        return match

    def _find(self, method: str, path: str) -> Match | None:
        fixed = self._fixed.get((method, path)) or self._fixed.get(("ANY", path))
        if fixed is not None:
            return Match(fixed, {})
        segments = path.split("/")
        for allowed, pattern, route in self._patterns.get(len(segments), ()):
            if allowed in (method, "ANY") and (match := _match(pattern, segments)) is not None:
                return Match(route, match)
        return None


class Gateway:
    """The API as the template describes it."""

    def __init__(
        self,
        api_id: str,
        account: str,
        routes: Iterable[Route],
        cors: Mapping[str, Any] | None,
        pool: Pool,
    ) -> None:
        self._api_id = api_id
        self._account = account
        self._routes = Routes(routes)
        self._cors = Cors(cors) if cors is not None else None
        self._pool = pool

    async def serve(self, received: web.BaseRequest) -> web.StreamResponse:
        reply = await self._read_and_answer(received)
        response = web.Response(status=reply.status, body=reply.body)
        response.headers.clear()
        for name, value in reply.headers:
            response.headers.add(name, value)
        return response

    async def answer(self, request: Request) -> Reply:
        """Return the response of the preflight or the function."""
        origin = request.headers.get("origin")
        if request.method == "OPTIONS" and self._cors is not None:
            return self._cors.answer_preflight(origin)
        path, _, _ = request.target.partition("?")
        match = self._routes.find(request.method, "/" + path.lstrip("/"))
        if match is None:
            return self._decorate(_message(404, "Not Found"), origin)
        event = make_event(
            request, match, api_id=self._api_id, account=self._account, now_s=time.time()
        )
        reply = await self._integrate(match.route.function, event)
        return self._decorate(reply, origin)

    async def _integrate(self, name: str, event: Mapping[str, Any]) -> Reply:
        """Return the response of a function; 503 after API Gateway's timeout."""
        try:
            async with asyncio.timeout(MAX_INTEGRATION_S):
                return read_outcome(await self._pool.invoke(name, json.dumps(event).encode()))
        except TimeoutError:
            return _message(503, "Service Unavailable")
        except (ValueError, TypeError, AttributeError):  # the result is not a response
            return _message(500, "Internal Server Error")

    async def _read_and_answer(self, received: web.BaseRequest) -> Reply:
        try:
            body = await received.read()
        except web.HTTPRequestEntityTooLarge:
            return _message(413, "Request Entity Too Large")
        headers, cookies, size = read_headers(received.headers.items())
        if size > MAX_HEADER_BYTES:
            return _message(431, "Request Header Fields Too Large")
        target = received.raw_path
        if not target.isascii():  # bytes that are not UTF-8 arrive as lone surrogates
            target = target.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return await self.answer(
            Request(received.method, target, headers, cookies, body, received.remote or "")
        )

    def _decorate(self, reply: Reply, origin: str | None) -> Reply:
        extra = [("apigw-requestid", secrets.token_urlsafe(11) + "=")]
        if self._cors is None or origin is None:
            return Reply(reply.status, [*reply.headers, *extra], reply.body)
        cors = self._cors.headers(origin)
        own = {name for name, _ in cors}
        kept = [(name, value) for name, value in reply.headers if name.lower() not in own]
        return Reply(reply.status, [*kept, *cors, *extra], reply.body)


class Cors:
    """CORS as the API is configured; its headers replace the functions'."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self._origins = [origin.lower() for origin in configuration.get("AllowOrigins", [])]
        self._methods = ",".join(configuration.get("AllowMethods", []))
        self._allowed = ",".join(configuration.get("AllowHeaders", []))
        self._exposed = ",".join(configuration.get("ExposeHeaders", []))
        self._max_age = configuration.get("MaxAge")
        self._credentials = bool(configuration.get("AllowCredentials"))

    def headers(self, origin: str) -> list[tuple[str, str]]:
        """Return the headers for ``origin``; none for an origin that is not allowed."""
        if "*" in self._origins:
            added = [("access-control-allow-origin", "*")]
        elif origin.lower() in self._origins:
            added = [("access-control-allow-origin", origin), ("vary", "Origin")]
        else:
            return []
        if self._credentials:
            added.append(("access-control-allow-credentials", "true"))
        if self._exposed:
            added.append(("access-control-expose-headers", self._exposed))
        return added

    def answer_preflight(self, origin: str | None) -> Reply:
        """Return 204, with the CORS headers only for an allowed origin."""
        headers = self.headers(origin) if origin is not None else []
        if headers:
            if self._methods:
                headers.append(("access-control-allow-methods", self._methods))
            if self._allowed:
                headers.append(("access-control-allow-headers", self._allowed))
            if self._max_age is not None:
                headers.append(("access-control-max-age", str(self._max_age)))
        return Reply(204, headers, b"")


def make_event(
    request: Request, match: Match, *, api_id: str, account: str, now_s: float
) -> dict[str, Any]:
    """Return the event of a function, payload format 2.0."""
    path, _, query = request.target.partition("?")
    domain, _, port = request.headers.get("host", "localhost").partition(":")
    forwarded = (request.headers.get("x-forwarded-for"), request.source_ip)
    path = decode_path(path)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": match.route.key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": {
            "content-length": str(len(request.body)),
            **request.headers,
            "x-amzn-trace-id": f"Root=1-{int(now_s):08x}-{secrets.token_hex(12)}",
            "x-forwarded-for": ", ".join(filter(None, forwarded)),
            "x-forwarded-port": port or "80",
            "x-forwarded-proto": "http",
        },
        "requestContext": {
            "accountId": account,
            "apiId": api_id,
            "domainName": domain,
            "domainPrefix": domain.partition(".")[0],
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": request.source_ip,
                "userAgent": request.headers.get("user-agent", ""),
            },
            "requestId": secrets.token_urlsafe(11) + "=",
            "routeKey": match.route.key,
            "stage": STAGE,
            "time": format_time(now_s),
            "timeEpoch": int(now_s * 1000),
        },
        "isBase64Encoded": False,
    }
    if request.cookies:
        event["cookies"] = list(request.cookies)
    if query:
        event["queryStringParameters"] = read_query(query)
    if match.parameters:
        event["pathParameters"] = dict(match.parameters)
    if request.body:
        body = read_text(request.headers.get("content-type", ""), request.body)
        event["isBase64Encoded"] = body is None
        event["body"] = base64.b64encode(request.body).decode() if body is None else body
    return event


def read_outcome(outcome: Outcome) -> Reply:
    """Return the response for a function's result; its errors are not shown to clients."""
    if outcome.failed:
        return _message(500, "Internal Server Error")
    answer = json.loads(outcome.payload)
    if not isinstance(answer, dict) or "statusCode" not in answer:
        return Reply(200, [("content-type", "application/json")], outcome.payload)
    body = answer.get("body") or ""
    if not isinstance(body, str):
        return _message(500, "Internal Server Error")
    headers = [
        (str(name).lower(), _as_text(value))
        for name, value in (answer.get("headers") or {}).items()
    ]
    if not any(name == "content-type" for name, _ in headers):
        headers.append(("content-type", "text/plain; charset=utf-8"))
    headers += [("set-cookie", str(cookie)) for cookie in answer.get("cookies") or []]
    content = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
    return Reply(int(answer["statusCode"]), headers, content)


def read_headers(items: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[str], int]:
    """Return headers in lower case, repeated ones joined by commas; cookies; size in bytes."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    size = 0
    for name, value in items:
        size += len(name) + len(value) + 4
        key = name.lower()
        if not value.isascii():  # aiohttp reads UTF-8; a header is Latin-1
            value = value.encode("utf-8", "surrogateescape").decode("latin-1")
        if key == "cookie":
            cookies += [part.strip() for part in value.split(";") if part.strip()]
        else:
            headers[key] = f"{headers[key]},{value}" if key in headers else value
    return headers, cookies, size


def read_query(query: str) -> dict[str, str]:
    """Return the decoded parameters of a query; values of the same name are joined by commas."""
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    return parameters


def read_text(content_type: str, body: bytes) -> str | None:
    """Return the body of a text type as text; None for a type that is sent as base64."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind.startswith("text/") or kind in _TEXTS:
        return body.decode("utf-8", "replace")
    return None


def decode_path(path: str) -> str:
    """Decode a path as ``rawPath`` has it: every escape except ``%25``."""
    if "%" not in path:
        return path
    return "%25".join(unquote(part, errors="replace") for part in _PERCENT.split(path))


def format_time(now_s: float) -> str:
    """Format a time as in an access log, in any locale: 12/Mar/2020:19:03:58 +0000."""
    at = time.gmtime(now_s)
    month = _MONTHS[at.tm_mon - 1]
    clock = f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}"
    return f"{at.tm_mday:02}/{month}/{at.tm_year}:{clock} +0000"


def _message(status: int, text: str) -> Reply:
    body = json.dumps({"message": text}).encode()
    return Reply(status, [("content-type", "application/json")], body)


def _match(pattern: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    """Return the decoded parameters of a path that fits ``pattern``; None if it does not fit."""
    match = {}
    for part, segment in zip(pattern, segments, strict=True):
        if part.startswith("{"):
            if not segment:
                return None
            match[part[1:-1]] = unquote(segment, errors="replace")
        elif part != segment:
            return None
    return match


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
