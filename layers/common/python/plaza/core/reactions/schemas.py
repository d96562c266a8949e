"""Schemas of the API: reactions, lists of them, and targets of the app."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import ConfigDict, Field

from plaza.core.targets.external_targets import MAX_CREATED
from plaza.core.targets.schemas import NamedTarget, TypeText
from plaza.core.targets.types import EXTERNAL, TYPES
from plaza.infra.contexts import offers
from plaza.infra.http.schemas import (
    ORDER_EXAMPLE,
    OrderToken,
    RequestModel,
    ResponseModel,
    Time,
)
from plaza.infra.http.texts import HTTPS_URL

Url = Annotated[
    str, Field(max_length=2_000, pattern=HTTPS_URL, description="An https URL, where it is shown.")
]
_NAMED: dict[str, Any] = {
    "type": "article",
    "id": "8f3a",
    "owner": "my-app|ann",
    "url": "https://app.example/articles/8f3a",
}
Changed = Annotated[
    bool | None,
    Field(description="Whether this request changed the state; null while provisional."),
]
Exact = Annotated[bool, Field(description="False while provisional (202): accepted, not decided.")]


def make_example(likes: int, collects: int = 0) -> dict[str, Any]:
    """Return the fields of reactions in the view of a target. The reader is one of those who like
    it, if there are some, and does not collect it."""
    is_liked, likes_at = likes > 0, ORDER_EXAMPLE if likes else None
    collects_at = ORDER_EXAMPLE if collects else None
    return {
        "likes": likes,
        "likes_at": likes_at,
        "collects": collects,
        "collects_at": collects_at,
        "mine": {"liked": is_liked, "collected": False},
        "reactions": {
            "like": {"total": likes, "at": likes_at, "mine": is_liked},
            "collect": {"total": collects, "at": collects_at, "mine": False},
        },
    }


class LikeResponse(ResponseModel):
    """The caller's like of a target after the request."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "liked": True,
                    "likes": 42,
                    "likes_at": ORDER_EXAMPLE,
                    "changed": True,
                    "exact": True,
                },
                {"liked": True, "likes": None, "likes_at": None, "changed": None, "exact": False},
                {
                    "liked": False,
                    "likes": 41,
                    "likes_at": ORDER_EXAMPLE,
                    "changed": True,
                    "exact": True,
                },
                {"liked": False, "likes": None, "likes_at": None, "changed": None, "exact": False},
            ]
        }
    )

    liked: Annotated[bool, Field(description="Whether the caller likes the target.")]
    likes: Annotated[int | None, Field(description="Likes of the target; null while provisional.")]
    likes_at: OrderToken
    changed: Changed
    exact: Exact


class CollectResponse(ResponseModel):
    """The caller's collect of a post after the request."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "collected": True,
                    "collects": 7,
                    "collects_at": ORDER_EXAMPLE,
                    "changed": True,
                    "exact": True,
                },
                {
                    "collected": True,
                    "collects": None,
                    "collects_at": None,
                    "changed": None,
                    "exact": False,
                },
                {
                    "collected": False,
                    "collects": 6,
                    "collects_at": ORDER_EXAMPLE,
                    "changed": True,
                    "exact": True,
                },
                {
                    "collected": False,
                    "collects": None,
                    "collects_at": None,
                    "changed": None,
                    "exact": False,
                },
            ]
        }
    )

    collected: Annotated[bool, Field(description="Whether the caller collects the post.")]
    collects: Annotated[
        int | None, Field(description="Collects of the post; null while provisional.")
    ]
    collects_at: OrderToken
    changed: Changed
    exact: Exact


class ReactionTotal(ResponseModel):
    """The total of a kind of reaction, and what the caller did."""

    total: Annotated[int, Field(description="Number of reactions.")]
    at: OrderToken
    mine: Annotated[
        bool | None, Field(description="Whether the caller reacted; null without a session.")
    ]


Reactions = Annotated[
    dict[str, ReactionTotal],
    Field(description="Kind, such as `like`, -> its total. All kinds that the target takes."),
]


class ReactionState(ReactionTotal):
    """The total of a kind of reaction to a target, and whether the caller reacts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"total": 42, "at": ORDER_EXAMPLE, "mine": True, "exact": True}]
        }
    )

    exact: Exact


class ReactionResponse(ResponseModel):
    """The caller's reaction to a target after the request."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"on": True, "total": 42, "at": ORDER_EXAMPLE, "changed": True, "exact": True},
                {"on": True, "total": None, "at": None, "changed": None, "exact": False},
                {"on": False, "total": 41, "at": ORDER_EXAMPLE, "changed": True, "exact": True},
                {"on": False, "total": None, "at": None, "changed": None, "exact": False},
            ]
        }
    )

    on: Annotated[bool, Field(description="Whether the caller reacts.")]
    total: Annotated[int | None, Field(description="Its total; null while provisional.")]
    at: OrderToken
    changed: Changed
    exact: Exact


class TargetReference(NamedTarget):
    """The type and the id of a target that takes reactions; users have followers."""

    TYPES: ClassVar[Collection[str]] = TYPES.keys() - {"user"}


class ReactionQueryRequest(RequestModel):
    """The targets to count."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "targets": [
                        {"type": "post", "id": "9000001"},
                        {"type": "comment", "id": "9100001"},
                    ]
                }
            ]
        }
    )

    targets: Annotated[
        list[TargetReference], Field(min_length=1, max_length=100, description="Up to 100 targets.")
    ]


class TargetViewerState(ResponseModel):
    """What the caller did to a target."""

    liked: bool
    collected: bool


class TargetTotals(ResponseModel):
    """The totals of one target."""

    type: TypeText
    id: str
    likes: Annotated[int, Field(description="Number of likes.")]
    likes_at: OrderToken
    collects: Annotated[int, Field(description="Number of collects.")]
    collects_at: OrderToken
    mine: Annotated[
        TargetViewerState | None, Field(description="The caller's state; null without a session.")
    ]
    reactions: Reactions


class ReactionQueryResponse(ResponseModel):
    """The totals of the requested targets."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {"type": "post", "id": "9000001", **make_example(42, 7)},
                        {"type": "comment", "id": "9100001", **make_example(4)},
                    ],
                    "exact": True,
                }
            ]
        }
    )

    items: Annotated[
        list[TargetTotals], Field(description="One item a target, in the order of the request.")
    ]
    exact: Annotated[
        bool,
        Field(
            description=(
                "False while Redis is unavailable: totals come from MySQL and may be a second or "
                "two behind."
            )
        ),
    ]


Owner = Annotated[
    str,
    Field(
        pattern=r"^([1-9][0-9]{0,18}|[!-{}~]{1,200}\|[!-~]([ -~]{0,253}[!-~])?)$",
        description=(
            "The user who is notified of reactions: an id, or `<issuer>|<subject>` as in the header"
            " `Plaza-User`, whose first use creates the user. Null: none."
        ),
        examples=["my-app|ann"],
    ),
]


class TargetRequest(RequestModel):
    """A target of the app."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"owner": "my-app|ann", "url": "https://app.example/articles/8f3a"}]
        }
    )

    owner: Owner | None = None
    url: Url | None = None


class OwnTarget(NamedTarget):
    """A target of the app, with its id."""

    TYPES: ClassVar[Collection[str]] = EXTERNAL

    owner: Owner | None = None
    url: Url | None = None


class TargetsRequest(RequestModel):
    """Targets of the app to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"targets": [_NAMED]}]})

    targets: Annotated[
        list[OwnTarget],
        Field(min_length=1, max_length=MAX_CREATED, description=f"Up to {MAX_CREATED} targets."),
    ]


class CreatedTarget(ResponseModel):
    """What became of a target."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"type": "article", "id": "8f3a", "result": "live"}]}
    )

    type: TypeText
    id: str
    result: Annotated[
        Literal["live", "deleted", "owner-fixed", "number-taken", "unknown-owner"],
        Field(
            description=(
                "`live`, created now or before; else it was not created: it was deleted before, has"
                " another owner or none, its number is another id's, or its owner is no user."
            )
        ),
    ]


class CreatedTargets(ResponseModel):
    """What became of the targets of a request."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"items": [{"type": "article", "id": "8f3a", "result": "live"}]}]
        }
    )

    items: Annotated[
        list[CreatedTarget], Field(description="One item a target, in the order of the request.")
    ]


LikeOrder = Annotated[
    Literal["earliest", "latest"], Query(description="Order by the time of the like.")
]
Expand = Annotated[
    Literal["post", "target"] | None,
    Query(
        description=(
            "With `target` the items have their posts, comments and reviews, with `post` their "
            "posts only."
        )
    ),
]


class _Reacted(ResponseModel):
    """A target that the caller reacted to."""

    type: TypeText
    id: str
    at: Annotated[Time, Field(description="When the caller reacted.")]


@cache
def make_item_schema() -> type[ResponseModel]:
    """Return ``ReactionListItem``, with the texts that contexts offer as ``listed``."""
    example: dict[str, Any] = {"type": "post", "id": "9000001", "at": "2026-11-22T12:00:01.000417Z"}
    texts = [listed.find_schema() for _, listed in offers("listed")]
    for model in texts:
        extra: Any = model.model_config["json_schema_extra"]
        example |= extra["examples"][0]

    class ReactionListItem(*reversed(texts), _Reacted):  # type: ignore[misc]
        """A target that the caller reacted to."""

        model_config = ConfigDict(json_schema_extra={"examples": [example]})

    return ReactionListItem
