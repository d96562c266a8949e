"""Schemas of the API: totals on screens."""

from __future__ import annotations

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import AfterValidator, ConfigDict, Field

from plaza.core.live.read_totals import MAX_TARGETS
from plaza.core.targets.schemas import REFERENCE, check_reference
from plaza.infra.http.schemas import ORDER_EXAMPLE, OrderToken, ResponseModel
from plaza.infra.http.texts import FieldError


def _check_unique(references: list[str]) -> list[str]:
    if len({*references}) < len(references):
        raise FieldError("duplicate", "has a target twice")
    return references


Reference = Annotated[
    str,
    Field(
        pattern=REFERENCE,
        description="Type and id of a target.",
    ),
    AfterValidator(check_reference),
]
References = Annotated[
    list[Reference],
    Query(
        min_length=1,
        max_length=MAX_TARGETS,
        description=f"Up to {MAX_TARGETS} targets, separated by commas, each once.",
        json_schema_extra={"uniqueItems": True},
        examples=[["post:9000001", "user:31"]],
    ),
    AfterValidator(_check_unique),
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
