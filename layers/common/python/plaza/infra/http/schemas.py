"""What the contract says about requests and responses: types of parameters and bodies.

It imports pydantic, without which ``infra.http.resolver`` serves requests.
"""

from __future__ import annotations

import json
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.openapi.params import Header, Query
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from plaza.infra.http.requests import ID_DESCRIPTION, ID_PATTERN, JSON, MAX_ID
from plaza.infra.http.responses import PROBLEM, format_time
from plaza.infra.http.routes import Endpoint, Responses
from plaza.infra.http.texts import LINE_RULE, VISIBLE, FieldError, check_line, trim
from plaza.infra.runtime.errors import (
    Forbidden,
    PlazaError,
    SignInTooOld,
    SwitchedOff,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from plaza.infra.runtime.switch_state import WARMING_UP

T = TypeVar("T")


def check_id(text: str) -> str:
    """Return ``text``, the digits of an id. Raises FieldError if it is above 63 bits."""
    if int(text) > MAX_ID:
        raise FieldError("too-large", f"must be at most {MAX_ID}")
    return text


IdText = Annotated[
    str, Field(pattern=ID_PATTERN, description=ID_DESCRIPTION), AfterValidator(check_id)
]
Title = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description=LINE_RULE,
        json_schema_extra={"pattern": VISIBLE},
    ),
    BeforeValidator(trim),
    AfterValidator(check_line),
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


IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~ ]+$",
        description=(
            "The `ETag` of what you change, as you read it: 412 if it changed since. Without it "
            "the last change wins."
        ),
    ),
]


OrderToken = Annotated[
    str | None,
    Field(
        pattern=r"^[0-9A-Za-z_-]{1,64}$",
        description=(
            "Orders two values of this total: the greater text is newer. Compare code units, never "
            "with a locale. Null: this value may lack recent reactions; do not replace one that "
            "has a token."
        ),
    ),
]
Currency = Annotated[
    str,
    Field(
        pattern=r"^[A-Z]{3}$",
        description=(
            "Currency of the price, in letters of ISO 4217. Cents are hundredths of it, also where "
            "the currency has no such coin."
        ),
    ),
]
ORDER_EXAMPLE = "1--F-----t5G19KjaG---------2"


def _to_integer(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


ACCEPT_INTEGRAL_FLOAT = BeforeValidator(_to_integer)
"""Accepts 1400.0 as 1400: JSON Schema calls it an integer, and some clients send only floats."""


Time = Annotated[
    datetime,
    PlainSerializer(format_time, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time of a response, always with six digits of a second: some parsers take one form only."""


class ResponseModel(BaseModel):
    """Base of response bodies. Times are RFC 3339 in UTC, ids are strings. To clients it is open: a
    later version may have more fields, and more values of an enum."""

    model_config = ConfigDict(defer_build=True)


class RequestPart(BaseModel):
    """Base of objects in request bodies: unknown fields are refused, no type is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class RequestModel(RequestPart):
    """Base of request bodies."""

    @model_validator(mode="before")
    @classmethod
    def _reject_lone_surrogates(cls, value: Any) -> Any:
        """JSON may contain a lone surrogate, which UTF-8 and so MySQL and Redis cannot store."""
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise FieldError("control-character", "contains a lone surrogate") from None
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
    code: Annotated[
        str,
        Field(
            description=(
                "What is wrong, for programs: `missing`, `unknown`, `wrong-type`, `too-short`, "
                "`too-long`, `too-small`, `too-large`, `wrong-form`, `not-listed` and others. A "
                "code never changes; treat one that you do not know as `invalid`."
            )
        ),
    ]
    detail: Annotated[str, Field(description="What is wrong, for developers. The text may change.")]
    limit: Annotated[
        float | None,
        Field(description="The length, size or value that the field has to keep, if there is one."),
    ] = None


class Problem(ResponseModel):
    """An error, in the format of RFC 9457."""

    type: Annotated[
        str,
        Field(
            description=(
                "URI of the kind of error: where the documentation of the deployment describes it."
            )
        ),
    ]
    slug: Annotated[
        str,
        Field(description="The kind of error, the same in all deployments: programs compare it."),
    ]
    title: Annotated[str, Field(description="The kind of error, in words.")]
    status: Annotated[int, Field(description="The HTTP status code.")]
    detail: Annotated[str, Field(description="What is wrong in this request.")]
    errors: Annotated[
        list[FieldProblem] | None,
        Field(
            description="The invalid fields: of each `invalid-request`, and of no other problem."
        ),
    ] = None


def describe_endpoint(endpoint: Endpoint) -> dict[int, Any]:
    """Return the OpenAPI responses of a route that declares ``Responses``; others as declared."""
    declared: Any = endpoint.route.responses
    if not isinstance(declared, Responses):
        return dict(declared or {})
    errors: list[type[PlazaError]] = [
        *([Unauthenticated] if endpoint.security else []),
        *([Forbidden] if endpoint.security else []),
        *([SignInTooOld] if endpoint.fresh_sign_in else []),
        *declared.errors,
        *([SwitchedOff] if endpoint.switch or endpoint.is_held else []),
        *(TooManyRequests, PlazaError, Unavailable),
    ]
    body = _find_body(get_type_hints(endpoint.route.func, include_extras=True)["return"])
    described = describe_problems(*errors)
    if endpoint.is_held:
        examples = described[SwitchedOff.status]["content"][PROBLEM]["examples"]
        examples[SwitchedOff.slug]["detail"] = WARMING_UP
    for example, (status, text) in enumerate(declared.items(), declared.example):
        content = {JSON: {"model": body, "x-example": example}}
        described[status] = {"description": text} | ({"content": content} if body else {})
    return described


def _find_body(returned: Any) -> Any:
    """Return the type of a body: X for X, ``tuple[X, int]``, ``Response[X]`` and
    ``Annotated[str, BodyOf(X)]``; None for none."""
    if returned in (None, type(None)):
        return None
    origin, inner = get_origin(returned), get_args(returned)
    if origin is Annotated:
        return inner[1].type
    return _find_body(inner[0]) if origin in (tuple, Response) else returned


def describe_problems(*errors: type[PlazaError]) -> dict[int, Any]:
    """Return the OpenAPI responses of errors."""
    responses: dict[int, Any] = {}
    for error in errors:
        response = responses.setdefault(
            error.status,
            {
                "description": HTTPStatus(error.status).phrase,
                "content": {PROBLEM: {"model": Problem, "examples": {}}},
            },
        )
        examples = response["content"][PROBLEM]["examples"]
        examples[error.slug] = {"summary": error.title, "detail": error.example}
    return responses
