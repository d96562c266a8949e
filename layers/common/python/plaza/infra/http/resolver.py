"""The resolver of all API functions: the caller, routes, responses, problem+json.

    app = PlazaResolver(identify)

    @app.get("/vouchers/<voucher_id>", security=OPTIONAL, responses=Responses("The voucher.", Gone))
    def get_voucher(voucher_id: Id) -> VoucherResponse: ...

It is a resolver of Powertools. Only ``resolve`` is replaced: API Gateway has matched the request,
so its event names the route and has the parameters of the path. For an event of a load balancer
``infra.http.balancer_events`` does that.
A function starts without what only some requests need. The parameters of a route are analysed, and
pydantic is imported, at its first request that has some beside ids (``infra.http.arguments``).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import random
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from aws_lambda_powertools.event_handler.api_gateway import (
    APIGatewayHttpResolver,
    Response,
    Route,
)
from aws_lambda_powertools.event_handler.middlewares import BaseMiddlewareHandler
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from plaza.infra.http.callers import Caller, Identify
from plaza.infra.http.client_ip import read_client_ip
from plaza.infra.runtime import clock, switch_state
from plaza.infra.runtime.errors import (
    BadInput,
    Forbidden,
    MethodNotAllowed,
    NotFound,
    PlazaError,
    SwitchedOff,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from plaza.infra.runtime.json_encoders import make_encoder
from plaza.infra.runtime.observability import begin_request, end_request, error_fields, record
from plaza.infra.runtime.process import LocalCache
from plaza.infra.runtime.switch_state import Switch

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.openapi.models import OpenAPI

F = TypeVar("F", bound=Callable[..., Any])

Event = dict[str, Any]
"""An event of API Gateway, payload format 2.0."""

MAX_BODY_BYTES = 64 * 1024
MAX_ID = 2**63 - 1
MAX_ERRORS = 20  # reported
JSON = "application/json"
PROBLEM = "application/problem+json"
PROBLEM_TYPES = "https://plaza.example/problems/"
MIN_COMPRESSED_BYTES = 1_400  # less fits into one packet
# In Python 3.11 a name of an Enum is looked up by a function.
_CREATED, _FAILED = HTTPStatus.CREATED.value, HTTPStatus.INTERNAL_SERVER_ERROR.value
_LIMITED = HTTPStatus.TOO_MANY_REQUESTS.value
_GZIP_LEVEL = 1  # higher levels take several times as long for a tenth less
_GZIP_FORMAT = 31  # of zlib: the largest window, with the header of gzip
_ZERO_QUALITY = re.compile(r"q=0(\.0*)?")
_ID = re.compile(r"[1-9][0-9]{0,18}")
_encode = make_encoder()
_ANONYMOUS = Caller()

# Public responses, compressed, by tag.
_compressed: LocalCache[str, str] = LocalCache(max_entries=100, ttl_s=60)

# Further fields of the log line of the current request; a Lambda serves one request at a time.
_log_fields: dict[str, Any] = {}

Headers = dict[str, str]
"""Headers of a response, with names in lower case: the third part of what a route returns."""

Security = list[dict[str, list[str]]]
"""What a route declares about sessions, as OpenAPI's ``security``."""

BEARER: Security = [{"bearer": []}]
"""The route needs a session."""

ADMIN: Security = [{"bearer": ["admin"]}]
"""The route needs a session of an admin: OpenAPI lists the roles that it requires."""

OPTIONAL: Security = [{}, *BEARER]
"""The route accepts requests without a token, and refuses invalid tokens."""

PUBLIC: Security = []
"""The route reads no token; its callers are limited by network."""

PARAMETER_HEADERS = ("idempotency-key", "x-visitor-id")
"""The headers that are parameters of routes."""

ID_PATTERN = r"^[1-9][0-9]{0,18}$"
ID_DESCRIPTION = "Positive integer of at most 9223372036854775807, as a string."


class Id(str):
    """A parameter of a path: a positive integer of at most 19 digits."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        return {"type": "str", "pattern": ID_PATTERN}

    @classmethod
    def __get_pydantic_json_schema__(cls, *_: Any) -> dict[str, str]:
        return {"type": "string", "pattern": ID_PATTERN, "description": ID_DESCRIPTION}


class StoppedBy(BaseMiddlewareHandler[APIGatewayHttpResolver]):
    """The middleware of a route that a switch stops. PlazaResolver applies it before it reads the
    body, without the cost of a middleware."""

    def __init__(self, switch: Switch) -> None:
        self.switch = switch

    def handler(self, app: APIGatewayHttpResolver, next_middleware: Callable[..., Any]) -> Any:
        """Raise SwitchedOff, or go on."""
        switch_state.require(self.switch, app.current_event.path_parameters)
        return next_middleware(app)


WRITES: list[Callable[..., Any]] = [StoppedBy(Switch.WRITES)]
"""The middlewares of a route that is stopped while Plaza is read-only."""


class BodyOf(NamedTuple):
    """The type of a body that a function returns as JSON or as a dict, for the contract:
    ``Annotated[str, BodyOf(Post)]``."""

    type: Any


class Responses(dict[int, Any]):
    """What a route returns: a text for each status, and its ``errors``. For the contract.

    A text alone describes the status 200. The body has the type that the function returns; its
    example is number ``example`` of the type, and the following number for the following status.
    Not declared are the errors of its ``security`` and of its switch, and those that every route
    may raise: 400, 429, 500, 503.
    """

    def __init__(
        self, texts: str | Mapping[int, str], *errors: type[PlazaError], example: int = 0
    ) -> None:
        super().__init__({200: texts} if isinstance(texts, str) else texts)
        self.errors = errors
        self.example = example


class InvalidRequest(BadInput):
    """Parameters or fields of the body are invalid: ``errors`` has their paths and details."""

    def __init__(self, errors: list[dict[str, str]]) -> None:
        super().__init__(errors[0]["field"], errors[0]["detail"])
        self.errors = errors[:MAX_ERRORS]


class Endpoint(NamedTuple):
    """A route, what it needs, the switch that stops it (None: nothing does), and what reads the
    arguments of its function in an event."""

    route: Route
    security: Security
    switch: Switch | None
    read_arguments: Callable[[Event], dict[str, Any]]

    @property
    def key(self) -> str:
        """The route's name in API Gateway: ``PUT /posts/{post_id}/likes/me``."""
        return f"{self.route.method} {self.route.openapi_path}"


class PlazaResolver(APIGatewayHttpResolver):
    """The routes of a function. Each request is identified and limited before it is routed.

    Then its session is checked, then its switch, then the size and type of the body, then the
    parameters. Then middlewares run, if there are some, and the function. Each route declares its
    ``security``: ``BEARER``, ``ADMIN``, ``OPTIONAL`` or ``PUBLIC``. ``tag`` belongs to routes that
    declare none. With ``admits_unknown_tokens`` the routes themselves refuse tokens without a
    session. ``paths`` are the paths that a 405 knows,
    with their methods; by default the app's routes. ``names`` are paths of other functions whose
    last part API Gateway takes for an id of a route of this one, with their methods.
    """

    def __init__(
        self,
        identify: Identify,
        *,
        tag: str = "",
        admits_unknown_tokens: bool = False,
        paths: Mapping[str, Iterable[str]] | None = None,
        names: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        super().__init__()
        self.identify = identify
        self.endpoints: dict[str, Endpoint] = {}
        self.caller = _ANONYMOUS
        self.client_ip = ""
        self._tags = [tag] if tag else []
        self._admits_unknown_tokens = admits_unknown_tokens
        self._paths = paths
        self.exception_handler(Exception)(_answer_error)
        # Paths without a parameter -> their methods.
        self._names = {path: set(methods) for path, methods in (names or {}).items()}

    def route(self, *args: Any, **options: Any) -> Callable[[F], F]:
        """Register a function, as the resolver of Powertools does, under its ``routeKey``."""
        register = super().route(*args, **options)

        def register_endpoint(function: F) -> F:
            count = len(self._route_keys)
            register(function)
            added = len(self._route_keys) - count
            newest = self._dynamic_routes if "<" in args[0] else self._static_routes
            for route in newest[-added:]:
                stops = [
                    middleware
                    for middleware in route.middlewares
                    if isinstance(middleware, StoppedBy)
                ]
                route.middlewares = [
                    middleware for middleware in route.middlewares if middleware not in stops
                ]
                if route.security is None:
                    raise TypeError(f"{route.method} {args[0]} declares no security")
                route.tags = route.tags or self._tags
                switch = stops[0].switch if stops else None
                endpoint = Endpoint(route, route.security, switch, _choose_reader(function))
                self.endpoints[endpoint.key] = endpoint
                if "<" not in route.path:
                    self._names.setdefault(route.path, set()).add(route.method)
            return function

        return register_endpoint

    def get_openapi_schema(self, **options: Any) -> OpenAPI:
        """Return the contract of the routes."""
        from plaza.infra.http.schemas import describe_endpoint  # imports pydantic

        for endpoint in self.endpoints.values():
            endpoint.route.responses = describe_endpoint(endpoint)
        return super().get_openapi_schema(**options)

    def resolve(self, event: Any, context: Any) -> dict[str, Any]:
        """Serve one request and record one line; return the response.

        All lines of the request and the header ``X-Request-Id`` of the response have the id of the
        request (plaza.infra.runtime.observability).
        """
        if "routeKey" not in event:
            from plaza.infra.http import balancer_events

            return balancer_events.serve(self, event, context, self.resolve)
        request = as_get(event)
        # Of this object: Powertools sets them on a class, which slows down each later attribute.
        self.current_event, self.lambda_context = APIGatewayProxyEventV2(request), context
        return drop_body(event, _respond(self, request))

    def admit(self, event: Event, security: Security) -> None:
        """Identify the caller of a request, and check its rate limit and its session.
        Raises TooManyRequests, Unauthenticated, Forbidden, Unavailable."""
        header = event["headers"].get("authorization") if security else None
        self.client_ip = read_client_ip(event)
        self.caller = caller = self.identify(header, self.client_ip, event["routeKey"])
        if caller.wait_ms:
            wait_s = -(-caller.wait_ms // 1000)
            detail = f"The rate limit is exceeded; retry after {wait_s} s."
            raise TooManyRequests(detail, retry_after_s=wait_s)
        if self._admits_unknown_tokens and caller.refusal == "unknown":
            return  # the route itself refuses it
        if {} in security:
            find_caller(self)
        elif security:
            require_caller(self)
            for role in security[0]["bearer"]:
                if caller.role != role:
                    raise Forbidden(f"This request requires the role {role}.")

    def answer(self, event: Event) -> Any:
        """Return the result of the route of a request. Raises what the route raises; without a
        route MethodNotAllowed, NotFound."""
        endpoint = self.endpoints.get(event["routeKey"])
        methods = self._names.get(event["rawPath"])
        if endpoint is not None and methods is not None and endpoint.route.method not in methods:
            endpoint = None  # API Gateway took ``search`` of ``/shops/search`` for an id
        self.admit(event, PUBLIC if endpoint is None else endpoint.security)
        if endpoint is None:
            raise self._refuse(event["requestContext"]["http"]["method"], event["rawPath"])
        route, _, switch, read_arguments = endpoint
        if switch is not None:
            switch_state.require(switch, event.get("pathParameters"))
        arguments = {}
        if (
            self.caller.refusal is None
        ):  # else an admitted unknown token: its route has no arguments
            check_body(event)
            arguments = read_arguments(event)
        if not (route.middlewares or self._router_middlewares):
            return route.func(**arguments)
        self.context.update(_route=route, _path=event["rawPath"])
        try:
            return route(self._router_middlewares, self, arguments)
        finally:
            self.context.clear()

    def answer_error(self, error: Exception) -> Any:
        """Return the result of the handler of an error."""
        handler = self.exception_handler_manager.lookup_exception_handler(type(error))
        return cast("Callable[..., Any]", handler)(error)

    def _refuse(self, method: str, path: str) -> PlazaError:
        segments = path.removesuffix("/").split("/")
        for pattern, methods in sorted((self._paths or self._own_paths()).items()):
            if fits(pattern.split("/"), segments):
                allow = ", ".join(_allow({m.upper() for m in methods}, method))
                return MethodNotAllowed(f"{path} allows {allow}, not {method}.", allow=allow)
        return NotFound(f"Path {path[:200]} does not exist.")

    def _own_paths(self) -> dict[str, set[str]]:
        paths = {path: set(methods) for path, methods in self._names.items()}
        for key in self.endpoints:
            method, _, path = key.partition(" ")
            paths.setdefault(path, set()).add(method)
        return paths


def fits(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    """Return whether the segments of a path fit a pattern, whose segments may be ``{id}``."""
    return len(pattern) == len(segments) and all(
        part == segment or (part[:1] == "{" and segment != "")
        for part, segment in zip(pattern, segments, strict=True)
    )


def _allow(methods: set[str], refused: str) -> list[str]:
    """Return the methods of a path for a 405: HEAD with GET, unless HEAD itself is refused."""
    return sorted(methods | ({"HEAD"} if "GET" in methods and refused != "HEAD" else set()))


def _choose_reader(function: Callable[..., Any]) -> Callable[[Event], dict[str, Any]]:
    """Return what reads the arguments of ``function``; ids and defaults need no pydantic."""
    annotations = {a for name, a in function.__annotations__.items() if name != "return"}
    if not annotations:
        return _read_nothing
    if annotations == {"Id"}:
        return _read_ids
    code, defaults = function.__code__, function.__defaults__ or ()
    required = code.co_varnames[: code.co_argcount - len(defaults)]
    has_ids_only = all(function.__annotations__[name] == "Id" for name in required)
    return partial(_read_given if has_ids_only else _read_arguments, function)


def find_unknown_parameters(event: Event, known: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return an error for each parameter of the query that a route does not have."""
    names = (event.get("queryStringParameters") or {}).keys() - set(known)
    detail = "Extra inputs are not permitted"  # as pydantic says of a field of the body
    return [{"field": f"query.{name}", "detail": detail} for name in sorted(names)]


def _read_nothing(event: Event) -> dict[str, Any]:
    if event.get("queryStringParameters"):
        raise InvalidRequest(find_unknown_parameters(event))
    return {}


def _read_ids(event: Event) -> dict[str, Any]:
    parameters: dict[str, Any] = event.get("pathParameters") or {}
    for name, text in parameters.items():
        if not _ID.fullmatch(text):
            raise NotFound(f"{name} is not an id.")
    _read_nothing(event)
    return parameters


def _read_given(function: Callable[..., Any], event: Event) -> dict[str, Any]:
    """Return the arguments of a function all of whose parameters but ids have defaults."""
    headers = event["headers"]
    if event.get("queryStringParameters") or any(name in headers for name in PARAMETER_HEADERS):
        return _read_arguments(function, event)
    return _read_ids(event)


def _read_arguments(function: Callable[..., Any], event: Event) -> dict[str, Any]:
    from plaza.infra.http.arguments import reader_of  # imports pydantic

    return reader_of(function)(event)


def render(result: Any) -> dict[str, Any]:
    """Return the response of API Gateway for a dict, a model, JSON or None, for a tuple of one of
    them, its status and maybe headers, or for a Response."""
    headers: dict[str, str] = {}
    status, content_type = 200, JSON
    if type(result) is tuple:
        result, status, *more = result
        headers = dict(*more)
    elif isinstance(result, Response):
        status, content_type = result.status_code, result.content_type or JSON
        headers = {name.lower(): str(value) for name, value in result.headers.items()}
        result = result.body or ""
    if type(result) is dict:
        body = _encode(result)
    elif result is None:
        body = ""
    else:
        body = result if type(result) is str else result.model_dump_json(by_alias=True)
    if body:
        headers = {"content-type": content_type, **headers}
    return {"statusCode": status, "headers": headers, "body": body}


def as_get(event: Event) -> Event:
    """Return a request of the route ``HEAD /posts/{post_id}`` as one of its GET, others as they
    are."""
    key: str = event["routeKey"]
    return {**event, "routeKey": f"GET {key[5:]}"} if key.startswith("HEAD ") else event


def drop_body(event: Event, response: dict[str, Any]) -> dict[str, Any]:
    """Return the response without its body if the request is a HEAD."""
    if event["requestContext"]["http"].get("method") != "HEAD":
        return response
    return {**response, "body": "", "isBase64Encoded": False}


def _respond(app: PlazaResolver, event: Event) -> dict[str, Any]:
    began_s = clock.monotonic_s()
    _log_fields.clear()
    app.caller = _ANONYMOUS
    request_id = begin_request(event)
    try:
        try:
            response = render(app.answer(event))
        except Exception as error:
            response = render(app.answer_error(error))
        headers = response["headers"]
        if request_id is not None:
            headers["x-request-id"] = request_id
        if response["statusCode"] == _CREATED:
            headers |= _locate(event["rawPath"], json.loads(response["body"]))
        _add_cache_headers(event, response, app.caller)
        _add_limit_headers(response, app.caller)
        _compress(event, response)
        metrics = {"requests_limited": 1} if app.caller.wait_ms else {}
        if "switched_off" in _log_fields:
            metrics |= {"requests_switched_off": 1}
        elif response["statusCode"] >= _FAILED:
            metrics |= {"server_errors": 1}
        if not metrics and not _is_sampled():
            return response
        record(
            "request_served",
            metrics,
            route=event.get("routeKey"),
            status=response["statusCode"],
            duration_ms=round((clock.monotonic_s() - began_s) * 1000, 2),
            **_caller_fields(app.caller),
            **_path_ids(event),
            **_log_fields,
        )
    finally:
        end_request()
    return response


def _is_sampled() -> bool:
    """Decide by the switch whether the line of a request is written; add the rate if it is."""
    rate = switch_state.current().log_sample_rate
    if rate < 1:
        _log_fields["sample_rate"] = rate
    return rate >= 1 or random.random() < rate


def _locate(path: str, created: dict[str, Any]) -> dict[str, str]:
    """Return the header with the path of what a POST to ``path`` created: its id in the last
    collection of the path, or the current session. What has no id has no path."""
    collection = path.rstrip("/")
    if "id" in created:
        return {"location": f"/{collection.rpartition('/')[2]}/{created['id']}"}
    return {"location": f"{collection}/current"} if collection == "/auth/sessions" else {}


def _add_cache_headers(event: Event, response: dict[str, Any], caller: Caller) -> None:
    """Forbid caches to store a private response. A public one, a 200 to a GET of an anonymous
    caller, gets an ``ETag``; it becomes a 304 without a body if ``If-None-Match`` has that tag."""
    is_public = (
        event["routeKey"].startswith("GET ")
        and response["statusCode"] == HTTPStatus.OK
        and caller.user_id is None
    )
    if not is_public:
        response["headers"]["cache-control"] = "no-store"
        return
    tag = f'"{hashlib.sha256(response["body"].encode()).hexdigest()[:32]}"'
    # A weak tag: it is valid for the compressed response, too.
    response["headers"] |= {"etag": f"W/{tag}", "vary": "authorization, accept-encoding"}
    response["headers"].setdefault("cache-control", "no-cache")
    sent = event["headers"].get("if-none-match", "").split(",")
    if tag in {sent_tag.strip().removeprefix("W/") for sent_tag in sent}:
        response.update(statusCode=HTTPStatus.NOT_MODIFIED.value, body="")


def _add_limit_headers(response: dict[str, Any], caller: Caller) -> None:
    """Add what the rate limit of the caller admits after the request.

    Not to a response that shared caches may send to others, and not to the 429 of another limit,
    whose ``Retry-After`` would contradict it.
    """
    quota, headers = caller.quota, response["headers"]
    is_limited_otherwise = response["statusCode"] == _LIMITED and not caller.wait_ms
    if quota is None or is_limited_otherwise or headers["cache-control"].startswith("public"):
        return
    headers["ratelimit"] = f'"default";r={quota.remaining};t={quota.full_in_s}'
    headers["ratelimit-policy"] = f'"default";q={quota.burst};w={quota.window_s}'


def _compress(event: Event, response: dict[str, Any]) -> None:
    """Compress a response that is longer than a packet, if the client accepts gzip.

    Never compresses a response that mixes a secret with text that an attacker controls (BREACH):
    tokens and codes are in responses to POST and PUT, a phone number is in the export. CSRF does
    not apply: sessions are not cookies.
    """
    body, route = response["body"], event["routeKey"]
    if (
        len(body) < MIN_COMPRESSED_BYTES
        or not (route.startswith("GET ") or route == "POST /reactions/query")
        or route == "GET /users/me/export"
        or not _accepts_gzip(event["headers"].get("accept-encoding", ""))
    ):
        return
    etag = response["headers"].get("etag")
    encoded = etag and _compressed.get(etag)
    if not encoded:
        compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
        content = compressor.compress(body.encode()) + compressor.flush()
        encoded = base64.b64encode(content).decode()
        if etag:
            _compressed.put(etag, encoded)
    response["headers"]["content-encoding"] = "gzip"
    response.update(body=encoded, isBase64Encoded=True)


def _accepts_gzip(accepted: str) -> bool:
    """Return whether a header Accept-Encoding has gzip, and not with the quality 0."""
    for coding in accepted.lower().split(","):
        name, _, quality = coding.partition(";")
        if name.strip() == "gzip":
            return _ZERO_QUALITY.fullmatch(quality.strip()) is None
    return False


def _caller_fields(caller: Caller) -> dict[str, str | None]:
    fields = {"caller_id": None if caller.user_id is None else str(caller.user_id)}
    return fields | {"refusal": caller.refusal} if caller.refusal else fields


def _path_ids(event: dict[str, Any]) -> dict[str, str]:
    """Return the ids of the path, so that a request id leads to the rows."""
    return {k: v for k, v in (event.get("pathParameters") or {}).items() if _ID.fullmatch(v)}


def _to_problem_error(error: Exception) -> PlazaError:
    """Return the error that the client gets; log the error of a 5xx."""
    if isinstance(error, SwitchedOff):
        _log_fields["switched_off"] = str(error)
        return error
    if isinstance(error, PlazaError) and error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return error
    _log_fields.update(error_fields(error))
    if isinstance(error, PlazaError):
        return error
    return PlazaError()


def _answer_error(error: Exception) -> Response[str]:
    return problem(_to_problem_error(error))


def problem(error: PlazaError) -> Response[str]:
    """Return the problem+json response for ``error``."""
    body: dict[str, Any] = {
        "type": PROBLEM_TYPES + error.slug,
        "title": error.title,
        "status": error.status,
        "detail": str(error),
    }
    if isinstance(error, InvalidRequest):
        body["errors"] = error.errors
    headers: dict[str, str | list[str]] = {}
    if isinstance(error, TooManyRequests | Unavailable):
        headers["retry-after"] = str(error.retry_after_s)
    elif isinstance(error, MethodNotAllowed):
        headers["allow"] = error.allow
    return Response(error.status, PROBLEM, json.dumps(body), headers)


def require_caller(app: PlazaResolver) -> int:
    """Return the user id of the caller.
    Raises Unauthenticated; Unavailable if the session could not be checked."""
    user_id = find_caller(app)
    if user_id is None:
        raise Unauthenticated("Send the header `Authorization: Bearer <token>`.")
    return user_id


def find_caller(app: PlazaResolver) -> int | None:
    """Return the user id of the caller, None for an anonymous one.
    Raises Unauthenticated for an invalid token; Unavailable if it could not be checked."""
    match app.caller.refusal:
        case "unavailable":
            raise Unavailable("The session cannot be checked at the moment; try again.")
        case "unknown":
            raise Unauthenticated("This token is unknown or has expired; sign in again.")
        case "malformed":
            raise Unauthenticated("The header Authorization is not `Bearer <token>`.")
    return app.caller.user_id


def read_id(text: str, resource: str) -> int:
    """Return the id in a path. Raises NotFound if ``text`` is no id."""
    if not _ID.fullmatch(text) or int(text) > MAX_ID:
        raise NotFound(f"{text[:32]!r} is not the id of a {resource}.")
    return int(text)


def check_body(event: dict[str, Any]) -> None:
    """Raise BadInput for a body above 64 KiB, or with another Content-Type than JSON."""
    body = event.get("body")
    if not body:
        return
    size = len(body) * 3 // 4 if event.get("isBase64Encoded") else len(body.encode())
    if size > MAX_BODY_BYTES:
        raise BadInput("body", f"is larger than {MAX_BODY_BYTES} bytes")
    content_type = event.get("headers", {}).get("content-type", JSON)
    if content_type.partition(";")[0].strip().lower() != JSON:
        raise BadInput("content-type", f"is not {JSON}")


def pack_cursor(*parts: int | str) -> str:
    """Encode ``parts``, 63-bit integers and ASCII text, as an opaque cursor."""
    raw = json.dumps(parts, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def encode_page(items: Iterable[str], after: Iterable[int | str] | None = None) -> str:
    """Encode a ``Page`` of encoded items. ``after`` are the parts of its cursor ``next``."""
    following = "null" if after is None else f'"{pack_cursor(*after)}"'
    return f'{{"items":[{",".join(items)}],"next":{following}}}'


def unpack_cursor(cursor: str, shape: tuple[type, ...]) -> list[Any]:
    """Decode a cursor whose parts have the types of ``shape``. Raises BadInput."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        parts = json.loads(raw)
    except (binascii.Error, ValueError, RecursionError):
        raise BadInput("cursor", "was not returned by this API") from None
    fits = isinstance(parts, list) and [type(part) for part in parts] == list(shape)
    if not fits or not all(p.isascii() if type(p) is str else abs(p) <= MAX_ID for p in parts):
        raise BadInput("cursor", "was not returned by this API")
    return list(parts)
