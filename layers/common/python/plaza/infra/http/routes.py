"""What a route declares: who may call it, what stops it, how its responses are sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Route
from aws_lambda_powertools.event_handler.middlewares import BaseMiddlewareHandler

from plaza.infra.http.requests import Event
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.errors import PlazaError
from plaza.infra.runtime.switch_state import RequestSwitch

Headers = dict[str, str]
"""Headers of a response, with names in lower case: the third part of what a route returns."""

Security = list[dict[str, list[str]]]
"""What a route declares about sessions, as OpenAPI's ``security``."""

BEARER: Security = [{"bearer": []}]
"""The route needs a session."""

ADMIN: Security = [{"bearer": ["admin"]}]
"""The route needs a session with the role admin: OpenAPI lists the roles that it admits."""

MODERATOR: Security = [{"bearer": ["moderator", "admin"]}]
"""The route needs a session of a moderator, or of an admin."""

SALES: Security = [{"bearer": ["sales", "admin"]}]
"""The route needs a session with the role sales, or of an admin."""

OPERATOR: Security = [{"bearer": ["operator", "admin"]}]
"""The route needs a session of an operator, or of an admin."""

SALES_OR_OPERATOR: Security = [{"bearer": ["sales", "operator", "admin"]}]
"""The route needs a session of one of these roles."""

ANY_ROLE: Security = [{"bearer": ["moderator", "sales", "operator", "admin"]}]
"""The route needs a session with a role other than ``user``."""

SERVER: Security = [{"bearer": ["server"]}]
"""The route needs the key of a server, which calls it for none of its users."""

BY_ROLE: tuple[Security, ...] = (
    ADMIN,
    MODERATOR,
    SALES,
    OPERATOR,
    SALES_OR_OPERATOR,
    ANY_ROLE,
    SERVER,
)
"""What admits the roles that it lists, and no others."""

OWNER: Security = [{"bearer": ["owner", "sales", "admin"]}]
"""The route needs a session of an owner of what it changes, or one of the roles sales and admin: it
checks that itself, because only it knows what it changes."""

MEMBER: Security = [{"bearer": ["member", "sales", "admin"]}]
"""The route needs a session of a member of what it reads or changes, or one of the roles sales and
admin; as OWNER."""

OPTIONAL: Security = [{}, *BEARER]
"""The route accepts requests without a token, and refuses invalid tokens."""

PUBLIC: Security = []
"""The route reads no token; its callers are limited by network."""


MAX_FRESH_S = 300
"""How long ago the sign-in may be for what needs a fresh one."""


def declare_arguments(
    function: Callable[..., Any],
    ids: Mapping[str, str],
    parameters: Mapping[str, tuple[str, Any]],
    returned: str,
) -> None:
    """Give a function that takes ``**arguments`` the arguments of a route, which one function then
    serves for several paths. ``ids``: name -> annotation of what is required; ``parameters``: name
    -> annotation, default. Annotations are texts, as in a module that postpones them."""
    required = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, annotation=a) for n, a in ids.items()]
    given = [
        Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, annotation=a, default=default)
        for n, (a, default) in parameters.items()
    ]
    vars(function)["__signature__"] = Signature([*required, *given], return_annotation=returned)
    annotations = {n: a for n, (a, _) in parameters.items()}
    function.__annotations__ = {**ids, **annotations, "return": returned}


class RouteOption(BaseMiddlewareHandler[APIGatewayHttpResolver]):
    """An option of a route, declared among its middlewares. PlazaResolver applies it without the
    cost of a middleware."""

    def handler(self, app: APIGatewayHttpResolver, next_middleware: Callable[..., Any]) -> Any:
        """Go on."""
        return next_middleware(app)


class StoppedBy(RouteOption):
    """The switch that stops a route. It is checked before the body is read."""

    def __init__(self, switch: RequestSwitch) -> None:
        self.switch = switch

    def handler(self, app: APIGatewayHttpResolver, next_middleware: Callable[..., Any]) -> Any:
        """Raise SwitchedOff, or go on."""
        switch_state.require(self.switch, app.current_event.path_parameters)
        return next_middleware(app)


class Compressed(RouteOption):
    """Whether long responses are compressed; by default the responses to GET.

    Never compress a response that mixes a secret with text that an attacker controls (BREACH): most
    tokens and codes are in responses to POST and PUT. CSRF does not apply: sessions are not
    cookies.
    """

    def __init__(self, compresses: bool) -> None:
        self.compresses = compresses


class Held(RouteOption):
    """Whether the route waits while readers are held; by default the GET routes that are not by
    role.

    It does not if it tells whether Plaza works, or what became of a change that its caller made.
    """

    def __init__(self, is_held: bool) -> None:
        self.is_held = is_held


class FreshSignIn(RouteOption):
    """A session needs a sign-in at most ``max_age_s`` ago for the route. Server keys are refused,
    unless ``admits_keys``: the server checks the sign-in."""

    def __init__(self, max_age_s: int = MAX_FRESH_S, *, admits_keys: bool = False) -> None:
        self.max_age_s = max_age_s
        self.admits_keys = admits_keys


class LoggedAt(RouteOption):
    """The share of the successful requests of a route that is logged, if setting and switch are not
    lower."""

    def __init__(self, rate: float) -> None:
        self.rate = rate


class CreatesAt(RouteOption):
    """The path of what a POST creates, if that has no ``id``."""

    def __init__(self, location: str) -> None:
        self.location = location


WRITES: list[Callable[..., Any]] = [StoppedBy(switch_state.ANY_WRITE)]
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


class Endpoint(NamedTuple):
    """A route, what it needs, the switch that stops it (None: nothing does), what reads the
    arguments of its function in an event, whether long responses are compressed, where it creates
    what has no id, whether its readers may be held, the share of its successful requests that is
    logged, and how fresh the sign-in has to be (None: any time)."""

    route: Route
    security: Security
    switch: RequestSwitch | None
    read_arguments: Callable[[Event], dict[str, Any]]
    compresses: bool
    location: str | None
    is_held: bool
    log_rate: float
    fresh_sign_in: FreshSignIn | None

    @property
    def key(self) -> str:
        """The route's name in API Gateway: ``PUT /posts/{post_id}/likes/me``."""
        return f"{self.route.method} {self.route.openapi_path}"


def make_endpoint(
    route: Route, security: Security, read_arguments: Callable[[Event], dict[str, Any]]
) -> Endpoint:
    """Return the endpoint of a route, and remove its options from its middlewares."""
    options = [option for option in route.middlewares if isinstance(option, RouteOption)]
    route.middlewares = [other for other in route.middlewares if other not in options]
    switch, compresses, location, log_rate = None, route.method == "GET", None, 1.0
    is_held = route.method == "GET" and security not in BY_ROLE
    fresh_sign_in = None
    for option in options:
        match option:
            case StoppedBy():
                switch = option.switch
            case Compressed():
                compresses = option.compresses
            case CreatesAt():
                location = option.location
            case Held():
                is_held = option.is_held
            case LoggedAt():
                log_rate = option.rate
            case FreshSignIn():
                fresh_sign_in = option
    return Endpoint(
        route,
        security,
        switch,
        read_arguments,
        compresses,
        location,
        is_held,
        log_rate,
        fresh_sign_in,
    )
