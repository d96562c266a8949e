"""The resolver of all API functions: the caller, routes, responses, problem+json.

    app = PlazaResolver(identify)

    @app.get("/vouchers/<voucher_id>", security=OPTIONAL, responses=Responses("The voucher.", Gone))
    def get_voucher(voucher_id: Id) -> VoucherResponse: ...

It is a resolver of Powertools. Only ``resolve`` is replaced: API Gateway has matched the request,
so its event names the route and has the parameters of the path. For an event of a load balancer
``infra.http.balancer_events`` does that.
A function starts without what only some requests need. The parameters of a route are analysed, and
pydantic is imported, at its first request that has some beside its path (``infra.http.arguments``).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from plaza.infra.http.callers import Caller, Identify
from plaza.infra.http.client_ip import read_client_ip
from plaza.infra.http.requests import (
    PARAMETER_HEADERS,
    Event,
    InvalidRequest,
    PathText,
    as_get,
    check_body,
    find_unknown_parameters,
    fits,
    is_id,
)
from plaza.infra.http.responses import (
    SECURITY_HEADERS,
    add_cache_headers,
    add_limit_headers,
    compress,
    drop_body,
    locate,
    problem,
    render,
)
from plaza.infra.http.routes import (
    BY_ROLE,
    MAX_FRESH_S,
    MEMBER,
    OWNER,
    PUBLIC,
    Endpoint,
    Security,
    make_endpoint,
)
from plaza.infra.runtime import clock, switch_state
from plaza.infra.runtime.errors import (
    Forbidden,
    InvalidToken,
    MethodNotAllowed,
    NotFound,
    PlazaError,
    SignInTooOld,
    SwitchedOff,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from plaza.infra.runtime.observability import begin_request, end_request, error_fields, record
from plaza.infra.runtime.settings import settings

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.openapi.models import OpenAPI

F = TypeVar("F", bound=Callable[..., Any])

# In Python 3.11 a name of an Enum is looked up by a function.
_CREATED, _FAILED = HTTPStatus.CREATED.value, HTTPStatus.INTERNAL_SERVER_ERROR.value
_REFUSED = HTTPStatus.BAD_REQUEST.value
_ANONYMOUS = Caller()
_ACTS_FOR = "plaza-user"
UNKNOWN_IDS_PER_TOKEN = 10

# Further fields of the log line of the current request; a Lambda serves one request at a time.
_log_fields: dict[str, Any] = {}


class PlazaResolver(APIGatewayHttpResolver):
    """The routes of a function. Each request is identified and limited before it is routed.

    Then its session is checked, then its switch, then the size and type of the body, then the
    parameters. Then middlewares run, if there are some, and the function. Each route declares its
    ``security``: ``BEARER``, one of ``BY_ROLE``, ``OWNER``, ``MEMBER``, ``OPTIONAL`` or ``PUBLIC``.
    ``tag`` belongs to routes that declare none. With ``admits_unknown_tokens`` the routes
    themselves refuse tokens without a session. ``paths`` are the paths that a 405 knows, with their
    methods; by default the app's routes. ``names`` are paths of other functions whose last part API
    Gateway takes for an id of a route of this one, with their methods.
    """

    def __init__(
        self,
        identify: Identify,
        *,
        tag: str = "",
        admits_unknown_tokens: Collection[str] = (),
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
                if route.security is None:
                    raise TypeError(f"{route.method} {args[0]} declares no security")
                route.tags = route.tags or self._tags
                endpoint = make_endpoint(route, route.security, _choose_reader(function))
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

            return balancer_events.serve(tuple(self.endpoints), event, context, self.resolve)
        request = as_get(event)
        # Of this object: Powertools sets them on a class, which slows down each later attribute.
        self.current_event, self.lambda_context = APIGatewayProxyEventV2(request), context
        return drop_body(event, _respond(self, request))

    def admit(self, event: Event, security: Security) -> None:
        """Identify the caller of a request, and check its rate limit and its session.
        Raises TooManyRequests, Unauthenticated, Forbidden, Unavailable."""
        header = event["headers"].get("authorization") if security else None
        self.client_ip = read_client_ip(event)
        acts_for = event["headers"].get(_ACTS_FOR) if security else None
        named = () if acts_for is None else (acts_for,)
        self.caller = caller = self.identify(header, self.client_ip, event["routeKey"], *named)
        _check_wait(caller)
        if caller.refusal == "unknown" and event["routeKey"] in self._admits_unknown_tokens:
            return  # the route itself refuses it
        if {} in security:
            find_caller(self)
        elif security:
            if caller.key_id is None or caller.role is None:
                require_caller(self)
            if security in BY_ROLE:
                _require_role(caller, security[0]["bearer"])

    def charge(self, tokens: int) -> None:
        """Take tokens of the caller's rate limit, before work that costs more than a request. None
        while Redis is unavailable. One round trip. Raises TooManyRequests."""
        if (bucket := self.caller.bucket) is not None:
            wait_ms, quota = bucket.charge(tokens)
            self.caller = self.caller._replace(wait_ms=wait_ms, quota=quota)
            _check_wait(self.caller)

    def charge_unknown(self, asked: int, known: int) -> None:
        """Take a token for each ten ids of a request that do not exist, from who invents ids to
        read all. None while Redis is unavailable. One round trip from ten on. Raises
        TooManyRequests."""
        if tokens := (asked - known) // UNKNOWN_IDS_PER_TOKEN:
            self.charge(tokens)

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
        route, switch = endpoint.route, endpoint.switch
        if (fresh := endpoint.fresh_sign_in) and not (fresh.admits_keys and self.caller.key_id):
            require_fresh_sign_in(self.caller, fresh.max_age_s)
        if switch is not None:
            switch_state.require(switch, event.get("pathParameters"))
        if endpoint.is_held and self.caller.role in (None, "user"):
            switch_state.require_warm()
        arguments = {}
        # An unknown token that is admitted: its route has no arguments.
        if self.caller.refusal is None:
            check_body(event)
            arguments = endpoint.read_arguments(event)
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
        segments = path.split("/")
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


def _allow(methods: set[str], refused: str) -> list[str]:
    """Return the methods of a path for a 405: HEAD with GET, unless HEAD itself is refused."""
    return sorted(methods | ({"HEAD"} if "GET" in methods and refused != "HEAD" else set()))


def _choose_reader(function: Callable[..., Any]) -> Callable[[Event], dict[str, Any]]:
    """Return what reads the arguments of ``function``; texts of its path and defaults need no
    pydantic."""
    parameters = signature(function).parameters.values()
    if not parameters:
        return _read_nothing
    texts = {
        name: declared
        for name, annotation in function.__annotations__.items()
        if isinstance(declared := function.__globals__.get(annotation), type)
        and issubclass(declared, PathText)
    }
    if len(texts) == len(parameters):
        return partial(_read_texts, texts)
    if texts.keys() >= {p.name for p in parameters if p.default is Parameter.empty}:
        return partial(_read_given, function, texts)
    return partial(_read_arguments, function)


def _read_nothing(event: Event) -> dict[str, Any]:
    if event.get("queryStringParameters"):
        raise InvalidRequest(find_unknown_parameters(event))
    return {}


def _read_texts(texts: Mapping[str, type[PathText]], event: Event) -> dict[str, Any]:
    parameters: dict[str, Any] = event.get("pathParameters") or {}
    for name, text in parameters.items():
        if texts[name].form.fullmatch(text) is None:
            raise NotFound(f"{name} is not {texts[name].NOUN}.")
    _read_nothing(event)
    return parameters


def _read_given(
    function: Callable[..., Any], texts: Mapping[str, type[PathText]], event: Event
) -> dict[str, Any]:
    """Return the arguments of a function whose parameters have defaults, but for its path."""
    headers = event["headers"]
    if event.get("queryStringParameters") or any(name in headers for name in PARAMETER_HEADERS):
        return _read_arguments(function, event)
    return _read_texts(texts, event)


def _read_arguments(function: Callable[..., Any], event: Event) -> dict[str, Any]:
    from plaza.infra.http.arguments import reader_of  # imports pydantic

    return reader_of(function)(event)


def _respond(app: PlazaResolver, event: Event) -> dict[str, Any]:
    began_s = clock.monotonic_s()
    _log_fields.clear()
    app.caller = _ANONYMOUS
    request_id, endpoint = begin_request(event), app.endpoints.get(event["routeKey"])
    try:
        try:
            response = render(app.answer(event))
        except Exception as error:
            response = render(app.answer_error(error))
        headers = response["headers"]
        if request_id is not None:
            headers["x-request-id"] = request_id
        if response["statusCode"] == _CREATED:
            without_id = None if endpoint is None else endpoint.location
            headers |= locate(event["rawPath"], json.loads(response["body"]), without_id)
        headers |= SECURITY_HEADERS
        add_cache_headers(event, response, app.caller)
        add_limit_headers(response, app.caller)
        if endpoint is not None and endpoint.compresses:
            compress(event, response)
        metrics = {"requests_limited": 1} if app.caller.wait_ms else {}
        if "switched_off" in _log_fields:
            metrics |= {"requests_switched_off": 1}
        elif response["statusCode"] >= _FAILED:
            metrics |= {"server_errors": 1}
        is_written = metrics or _is_always_logged(endpoint, response) or _is_sampled(endpoint)
        if not is_written:
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


def _is_always_logged(endpoint: Endpoint | None, response: Mapping[str, Any]) -> bool:
    """Return whether the line of a request is written at any rate: of errors, and of what operators
    and members of shops change."""
    if response["statusCode"] >= _REFUSED or endpoint is None:
        return True
    changes = endpoint.route.method != "GET"
    return changes and endpoint.security in (*BY_ROLE, OWNER, MEMBER)


def _require_role(caller: Caller, roles: list[str]) -> None:
    if caller.role not in roles:
        raise Forbidden(f"This request requires the role {' or '.join(roles)}.")


def require_fresh_sign_in(caller: Caller, max_age_s: int = MAX_FRESH_S) -> None:
    """Raise SignInTooOld unless the caller signed in at most ``max_age_s`` ago."""
    if caller.signed_in_at_s < clock.now_s() - max_age_s:
        raise SignInTooOld(
            f"Sign in again: this request needs a sign-in of the last {max_age_s} s."
        )


def _check_wait(caller: Caller) -> None:
    if caller.wait_ms:
        wait_s = -(-caller.wait_ms // 1000)
        detail = f"The rate limit is exceeded; retry after {wait_s} s."
        raise TooManyRequests(detail, retry_after_s=wait_s)


def _is_sampled(endpoint: Endpoint | None) -> bool:
    """Decide by setting, switch and route whether the line of a request is written; add the rate if
    it is."""
    of_route = 1.0 if endpoint is None else endpoint.log_rate
    rate = min(settings().log_sample_rate, switch_state.current().log_sample_rate, of_route)
    if rate < 1:
        _log_fields["sample_rate"] = rate
    return rate >= 1 or random.random() < rate


def _caller_fields(caller: Caller) -> dict[str, str | None]:
    fields = {"caller_id": None if caller.user_id is None else str(caller.user_id)}
    if caller.key_id is not None:
        fields["key_id"] = caller.key_id
    return fields | {"refusal": caller.refusal} if caller.refusal else fields


def _path_ids(event: dict[str, Any]) -> dict[str, str]:
    """Return the ids of the path, so that a request id leads to the rows."""
    return {k: v for k, v in (event.get("pathParameters") or {}).items() if is_id(v)}


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


def require_caller(app: PlazaResolver) -> int:
    """Return the user id of the caller.
    Raises Unauthenticated; Unavailable if the session could not be checked."""
    user_id = find_caller(app)
    if user_id is None and app.caller.key_id is not None:
        raise Unauthenticated("The header Plaza-User names no user that this request is for.")
    if user_id is None:
        raise Unauthenticated
    return user_id


def find_caller(app: PlazaResolver) -> int | None:
    """Return the user id of the caller, None for an anonymous one.
    Raises Unauthenticated for an invalid token; Unavailable if it could not be checked."""
    match app.caller.refusal:
        case "unavailable":
            raise Unavailable("The session cannot be checked at the moment; try again.")
        case "unknown":
            raise InvalidToken("This token is unknown or has expired; sign in again.")
        case "malformed":
            raise Unauthenticated("The header Authorization is not `Bearer <token>`.")
        case "no key":
            raise Unauthenticated("The header Plaza-User needs the key of a server, not a session.")
    return app.caller.user_id
