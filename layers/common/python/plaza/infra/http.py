"""HTTP for all API functions: typed routes, problem+json (RFC 9457), cursors, the caller."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from typing import Annotated, Any, Generic, TypeVar

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)
from aws_lambda_powertools.event_handler.openapi.params import Header, Path, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from plaza.infra import clock
from plaza.infra.callers import Caller, Identify
from plaza.infra.client_ip import read_client_ip
from plaza.infra.errors import (
    BadInput,
    Forbidden,
    Gone,
    NotFound,
    PlazaError,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from plaza.infra.observability import begin_request, end_request, error_fields, record

T = TypeVar("T")

MAX_BODY_BYTES = 64 * 1024
MAX_ID = 2**63 - 1
JSON = "application/json"
PROBLEM = "application/problem+json"
PROBLEM_TYPES = "https://plaza.example/problems/"
_ID = re.compile(r"[1-9][0-9]{0,18}")

# Further fields of the log line of the current request; a Lambda serves one request at a time.
_log_fields: dict[str, Any] = {}

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

ID_PATTERN = r"^[1-9][0-9]{0,18}$"
_ID_DESCRIPTION = "Positive integer of at most 9223372036854775807, as a string."


def check_id(text: str) -> str:
    """Return ``text``, the digits of an id. Raises ValueError if it is above 63 bits."""
    if int(text) > MAX_ID:
        raise ValueError(f"must be at most {MAX_ID}")
    return text


Id = Annotated[str, Path(pattern=ID_PATTERN, description=_ID_DESCRIPTION)]
IdText = Annotated[
    str, Field(pattern=ID_PATTERN, description=_ID_DESCRIPTION), AfterValidator(check_id)
]
Ids = Annotated[
    list[IdText],
    Query(min_length=1, max_length=100, description="Up to 100 ids, separated by commas."),
]
Limit = Annotated[int, Query(ge=1, le=100, description="Maximum number of items on the page.")]
Cursor = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        pattern=r"^[A-Za-z0-9_-]+$",
        description=(
            "Position of the page: `next` of the page before. Opaque; a value that this list did "
            "not return is refused."
        ),
        json_schema_extra={"format": "cursor"},
    ),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=128,
        pattern=r"^[!-~]+$",
        description=(
            "Key of this creation, chosen by the client. Requests of one user with the same key "
            "create one resource. Kept for 24 hours."
        ),
    ),
]


def _to_integer(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


ACCEPT_INTEGRAL_FLOAT = BeforeValidator(_to_integer)
"""Accepts 1400.0 as 1400: JSON Schema calls it an integer, and some clients send only floats."""


class ResponseModel(BaseModel):
    """Base of response bodies. Times are RFC 3339 in UTC, ids are strings."""

    model_config = ConfigDict(extra="forbid")


class RequestModel(BaseModel):
    """Base of request bodies: unknown fields are refused, no type is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _reject_lone_surrogates(cls, value: Any) -> Any:
        """JSON may contain a lone surrogate, which UTF-8 and so MySQL and Redis cannot store."""
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise ValueError("contains a lone surrogate") from None
        return value


class Page(ResponseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: Annotated[
        str | None,
        Field(description="Cursor of the page after this one; null on the last page."),
    ]


class FieldProblem(ResponseModel):
    """One invalid field of a request."""

    field: Annotated[str, Field(description="Path of the field, such as `body.title`.")]
    detail: Annotated[str, Field(description="What is wrong with its value.")]


class Problem(ResponseModel):
    """An error, in the format of RFC 9457."""

    type: Annotated[
        str,
        Field(description="URI that identifies the kind of error. Stable: programs compare it."),
    ]
    title: Annotated[str, Field(description="The kind of error, in words.")]
    status: Annotated[int, Field(description="The HTTP status code.")]
    detail: Annotated[str, Field(description="What is wrong in this request.")]
    errors: Annotated[
        list[FieldProblem] | None,
        Field(description="The invalid fields. Only `invalid-request` has them."),
    ] = None


PROBLEM_OF_STATUS: dict[int, type[PlazaError]] = {
    error.status: error
    for error in (
        BadInput,
        Unauthenticated,
        Forbidden,
        NotFound,
        Gone,
        TooManyRequests,
        PlazaError,
        Unavailable,
    )
}
"""Status -> its error in ``describe_problems``."""


def describe_problems(*problems: int | type[PlazaError]) -> dict[int, Any]:
    """Return the OpenAPI responses of a route's errors.
    A status means its error in ``PROBLEM_OF_STATUS``. 429, 500 and 503 are always included."""
    errors = [
        PROBLEM_OF_STATUS[problem] if isinstance(problem, int) else problem
        for problem in (*problems, 429, 500, 503)
    ]
    responses: dict[int, Any] = {}
    for error in sorted(errors, key=lambda error: error.status):
        response = responses.setdefault(
            error.status,
            {
                "description": HTTPStatus(error.status).phrase,
                "content": {PROBLEM: {"model": Problem, "examples": {}}},
            },
        )
        examples = response["content"][PROBLEM]["examples"]
        examples[error.slug] = {"summary": error.title}
    return responses


def describe_response(
    status: int, model: Any, description: str, *, example: int = 0
) -> dict[int, Any]:
    """Return the OpenAPI response of a route for a status that is no error.
    ``example`` is the index of an example of the model."""
    content = {JSON: {"model": model, "x-example": example}}
    return {status: {"description": description, "content": content}}


class Api(APIGatewayHttpResolver):
    """A resolver that identifies and limits the caller before it routes a request.

    Then it checks the session, the size and type of the body, and the parameters, in this order.
    Each route declares its ``security``: ``BEARER``, ``ADMIN``, ``OPTIONAL`` or ``PUBLIC``. A route
    that declares none needs a session.
    """

    def __init__(self, identify: Identify, *, admits_unknown_tokens: bool = False) -> None:
        super().__init__(enable_validation=True, json_body_deserializer=_read_json)
        self.identify = identify
        self.caller = Caller()
        self._admits_unknown_tokens = admits_unknown_tokens

    def admit(self, event: dict[str, Any], security: Security) -> None:
        """Identify the caller of a request, and check its rate limit and its session.
        Raises TooManyRequests, Unauthenticated, Forbidden, Unavailable."""
        header = None if security == PUBLIC else event.get("headers", {}).get("authorization")
        address, route = read_client_ip(event), event["routeKey"]
        self.caller = caller = self.identify(header, address, route)
        if caller.wait_ms:
            wait_s = -(-caller.wait_ms // 1000)
            detail = f"The rate limit is exceeded; retry after {wait_s} s."
            raise TooManyRequests(detail, retry_after_s=wait_s)
        if self._admits_unknown_tokens and caller.refusal == "unknown":
            return  # the route itself refuses it
        if security == OPTIONAL:
            find_caller(self)
        elif security != PUBLIC:
            require_caller(self)
            for role in security[0]["bearer"]:
                if caller.role != role:
                    raise Forbidden(f"This request requires the role {role}.")

    def security_of(self, route_key: str) -> Security:
        """Return what the route ``PUT /posts/{post_id}/likes/me`` declares; by default BEARER."""
        return self._securities.get(route_key, BEARER)

    @cached_property
    def _securities(self) -> dict[str, Security]:
        return {
            f"{route.method} {route.path}".replace("<", "{").replace(">", "}"): route.security
            for route in (*self._static_routes, *self._dynamic_routes)
            if route.security is not None
        }


def serve(app: Api, event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve one request with ``app`` and record one line; return the response.

    All lines of the request and the header ``X-Request-Id`` of the response have the id of the
    request (plaza.infra.observability).
    """

    def resolve() -> dict[str, Any]:
        if app.caller.refusal is None:  # else an admitted unknown token, whose route reads no body
            check_body(event)
        return app.resolve(event, context)

    return _respond(app, event, app.security_of(event["routeKey"]), resolve)


def refuse(
    app: Api, event: dict[str, Any], error: PlazaError, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a problem as the response to a public request, and record one line, as ``serve``
    does."""
    return _respond(app, event, PUBLIC, lambda: problem(error, headers))


def _respond(
    app: Api, event: dict[str, Any], security: Security, resolve: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    began_s = clock.monotonic_s()
    _log_fields.clear()
    app.caller = Caller()
    request_id = begin_request(event)
    try:
        try:
            app.admit(event, security)
            response = resolve()
        except Exception as error:
            response = problem(_to_problem_error(error))
        response["body"] = response["body"] or ""  # None for a 204, which some gateways refuse
        headers = response.setdefault("headers", {})
        if request_id is not None:
            headers["x-request-id"] = request_id
        if response["statusCode"] == HTTPStatus.CREATED:
            headers["location"] = _locate(event["rawPath"], json.loads(response["body"]))
        _add_cache_headers(event, app.caller, response)
        metrics = {"requests_limited": 1} if app.caller.wait_ms else {}
        if response["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR:
            metrics |= {"server_errors": 1}
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


def _locate(path: str, created: dict[str, Any]) -> str:
    """Return the path of what a POST to ``path`` created: its id in the last collection of the
    path, or ``current`` for a session, which has no id."""
    collection = path.rstrip("/")
    if "id" not in created:
        return f"{collection}/current"
    return f"/{collection.rpartition('/')[2]}/{created['id']}"


def _add_cache_headers(event: dict[str, Any], caller: Caller, response: dict[str, Any]) -> None:
    """Forbid caches to store a private response. A public one, a 200 to a GET of an anonymous
    caller, gets an ``ETag``; it becomes a 304 without a body if ``If-None-Match`` has that tag."""
    is_public = (
        event["requestContext"]["http"]["method"] == "GET"
        and response["statusCode"] == HTTPStatus.OK
        and caller.user_id is None
    )
    if not is_public:
        response["headers"]["cache-control"] = "no-store"
        return
    etag = f'"{hashlib.sha256(response["body"].encode()).hexdigest()[:32]}"'
    response["headers"] |= {"cache-control": "no-cache", "etag": etag, "vary": "authorization"}
    sent = event.get("headers", {}).get("if-none-match", "").split(",")
    if etag in {tag.strip().removeprefix("W/") for tag in sent}:
        response.update(statusCode=HTTPStatus.NOT_MODIFIED.value, body="")


def _caller_fields(caller: Caller) -> dict[str, str | None]:
    fields = {"caller_id": None if caller.user_id is None else str(caller.user_id)}
    return fields | {"refusal": caller.refusal} if caller.refusal else fields


def _path_ids(event: dict[str, Any]) -> dict[str, str]:
    """Return the ids of the path, so that a request id leads to the rows."""
    return {k: v for k, v in (event.get("pathParameters") or {}).items() if _ID.fullmatch(v)}


def create_api(identify: Identify, *, admits_unknown_tokens: bool = False) -> Api:
    """Create a resolver with typed routes whose errors are problem+json.

    With ``admits_unknown_tokens`` the routes themselves refuse tokens without a session.
    """
    app = Api(identify, admits_unknown_tokens=admits_unknown_tokens)

    @app.exception_handler(  # type: ignore[untyped-decorator]
        [RequestValidationError, RequestUnsupportedContentType]
    )
    def invalid(error: RequestValidationError) -> Response[str]:
        return _invalid(error)

    @app.exception_handler(UnicodeDecodeError)  # type: ignore[untyped-decorator]
    def undecodable(_: UnicodeDecodeError) -> Response[str]:
        return _problem_of(BadInput("body", "is not UTF-8"))

    @app.exception_handler(RecursionError)  # type: ignore[untyped-decorator]
    def too_deep(_: RecursionError) -> Response[str]:  # only the JSON parser recurses
        return _problem_of(BadInput("body", "is nested too deeply"))

    @app.exception_handler(Exception)  # type: ignore[untyped-decorator]
    def failed(error: Exception) -> Response[str]:
        return _problem_of(_to_problem_error(error))

    @app.not_found
    def not_found(_: Exception) -> Response[str]:
        return _problem_of(NotFound("This path does not exist."))

    return app


def _to_problem_error(error: Exception) -> PlazaError:
    """Return the error that the client gets; log the error of a 5xx."""
    if isinstance(error, PlazaError) and error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return error
    _log_fields.update(error_fields(error))
    if isinstance(error, PlazaError):
        return error
    return PlazaError("The server failed; the error was logged.")


def problem(
    error: PlazaError, headers: dict[str, str] | None = None, errors: Any = None
) -> dict[str, Any]:
    """Return the problem+json response for ``error``, in the format of API Gateway."""
    body: dict[str, Any] = {
        "type": PROBLEM_TYPES + error.slug,
        "title": error.title,
        "status": error.status,
        "detail": str(error),
    }
    if errors:
        body["errors"] = errors
    all_headers = {"content-type": PROBLEM, **(headers or {})}
    if isinstance(error, TooManyRequests | Unavailable):
        all_headers["retry-after"] = str(error.retry_after_s)
    return {"statusCode": error.status, "headers": all_headers, "body": json.dumps(body)}


def require_caller(app: Api) -> int:
    """Return the user id of the caller.
    Raises Unauthenticated; Unavailable if the session could not be checked."""
    user_id = find_caller(app)
    if user_id is None:
        raise Unauthenticated("Send the header `Authorization: Bearer <token>`.")
    return user_id


def find_caller(app: Api) -> int | None:
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


def read_source_ip(app: Api) -> str:
    """Return the IP address of the client of the current request (``read_client_ip``)."""
    return read_client_ip(app.current_event.raw_event)


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


def _read_json(text: str) -> Any:
    """Decode a body. Raises JSONDecodeError, RecursionError; BadInput for too large numbers."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise BadInput("body", "contains a number with too many digits") from None


def _problem_of(error: PlazaError) -> Response[str]:
    response = problem(error)
    return Response(
        status_code=response["statusCode"],
        content_type=PROBLEM,
        headers={k: v for k, v in response["headers"].items() if k != "content-type"},
        body=response["body"],
    )


def _invalid(error: RequestValidationError) -> Response[str]:
    found = error.errors()
    if all(e["loc"][0] == "path" for e in found):
        return _problem_of(NotFound(f"{found[0]['loc'][-1]} is not an id."))
    errors = [
        {
            "field": ".".join(str(part) for part in e["loc"]),
            "detail": e["msg"].removeprefix("Value error, "),  # pydantic's, for a ValueError
        }
        for e in found[:20]
    ]
    refusal = BadInput(errors[0]["field"], errors[0]["detail"])
    response = problem(refusal, errors=errors)
    return Response(status_code=400, content_type=PROBLEM, body=response["body"])
