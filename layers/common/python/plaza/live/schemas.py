"""Schemas of the API: totals on screens."""

from __future__ import annotations

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import AfterValidator, ConfigDict, Field

from plaza.infra.http.schemas import ORDER_EXAMPLE, OrderToken, ResponseModel
from plaza.infra.http.texts import FieldError
from plaza.infra.runtime.errors import NotFound
from plaza.live.read_totals import MAX_EXTERNAL, MAX_TARGETS
from plaza.reactions import Target
from plaza.targets.target_ids import parse_id
from plaza.targets.types import EXTERNAL


def _check_reference(text: str) -> str:
    parse_reference(text)
    return text


def _check_all(references: list[str]) -> list[str]:
    if len({*references}) < len(references):
        raise FieldError("duplicate", "has a target twice")
    # Their ids are long, and caches take URLs of up to 4,096 characters only.
    if sum(of.partition(":")[0] in EXTERNAL for of in references) > MAX_EXTERNAL:
        raise FieldError("too-long", f"has at most {MAX_EXTERNAL} targets of the app")
    return references


def parse_reference(text: str) -> Target:
    """Return the target of ``<type>:<id>``. Raises FieldError."""
    target_type, _, target_id = text.partition(":")
    try:
        return Target(target_type, parse_id(target_type, target_id))
    except NotFound as error:
        raise FieldError("wrong-form", f"has a target that cannot be: {error}") from None


Reference = Annotated[
    str,
    Field(
        pattern="^[a-z][a-z0-9_]{0,14}:[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$",
        description="Type and id of a target.",
    ),
    AfterValidator(_check_reference),
]
References = Annotated[
    list[Reference],
    Query(
        min_length=1,
        max_length=MAX_TARGETS,
        description=(
            f"Up to {MAX_TARGETS} targets, separated by commas, each once; up to {MAX_EXTERNAL} of"
            " them of the app's own types."
        ),
        json_schema_extra={"uniqueItems": True},
        examples=[["post:9000001", "user:31"]],
    ),
    AfterValidator(_check_all),
]


class LiveTotal(ResponseModel):
    """The total of a kind of reaction."""

    total: Annotated[int, Field(description="Number of reactions.")]
    at: OrderToken


class _Totals(ResponseModel):
    """What the totals of each target have."""

    id: str
    reactions: Annotated[
        dict[str, LiveTotal],
        Field(description="Kind, such as `like`, -> its total. All kinds that the target takes."),
    ]


class TextTotals(_Totals):
    """The totals of a comment, of a review or of a target of the app."""

    type: Annotated[str, Field(description="`comment`, `review` or a type of the app.")]
    likes: Annotated[int, Field(description="Number of likes.")]
    likes_at: OrderToken
    collects: Annotated[int, Field(description="Number of collects.")]
    collects_at: OrderToken


class PostTotals(_Totals):
    """The totals of a post."""

    type: Literal["post"]
    likes: Annotated[int, Field(description="Number of likes.")]
    likes_at: OrderToken
    collects: Annotated[int, Field(description="Number of collects.")]
    collects_at: OrderToken
    comments: Annotated[
        int, Field(description="Number of comments. It has no order: the last response counts.")
    ]


class UserTotals(_Totals):
    """The totals of a user."""

    type: Literal["user"]
    followers: Annotated[int, Field(description="Users who follow this user.")]
    followers_at: OrderToken


class TotalsResponse(ResponseModel):
    """The totals of the requested targets."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "type": "post",
                            "id": "9000001",
                            "likes": 42,
                            "likes_at": ORDER_EXAMPLE,
                            "collects": 7,
                            "collects_at": ORDER_EXAMPLE,
                            "comments": 5,
                            "reactions": {
                                "like": {"total": 42, "at": ORDER_EXAMPLE},
                                "collect": {"total": 7, "at": ORDER_EXAMPLE},
                            },
                        },
                        {
                            "type": "user",
                            "id": "31",
                            "followers": 3,
                            "followers_at": None,
                            "reactions": {"follow": {"total": 3, "at": None}},
                        },
                    ]
                }
            ]
        }
    )

    items: Annotated[
        list[PostTotals | TextTotals | UserTotals],
        Field(description="One item a target, in the order of the request."),
    ]
