"""Schemas of the API: follows."""

from __future__ import annotations

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import ConfigDict, Field

from plaza.core.reactions.model import Outcome
from plaza.infra.http.schemas import ORDER_EXAMPLE, OrderToken, ResponseModel, Time
from plaza.infra.mysql.sql import from_us
from plaza.people.follows.model import Person
from plaza.people.users.schemas import UserCard, UserViewerState

SortOrder = Annotated[
    Literal["earliest", "latest"], Query(description="Order by the time of the follow.")
]


class FollowResponse(ResponseModel):
    """The caller's follow of a user after the request. Provisional (202) if `followers` is null."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "following": True,
                    "followers": 43,
                    "followers_at": ORDER_EXAMPLE,
                    "changed": True,
                },
                {"following": True, "followers": None, "followers_at": None, "changed": None},
                {
                    "following": False,
                    "followers": 42,
                    "followers_at": ORDER_EXAMPLE,
                    "changed": True,
                },
                {"following": False, "followers": None, "followers_at": None, "changed": None},
            ]
        }
    )

    following: Annotated[bool, Field(description="Whether the caller follows the user.")]
    followers: Annotated[
        int | None, Field(description="Followers of the user; null while provisional.")
    ]
    followers_at: OrderToken
    changed: Annotated[
        bool | None,
        Field(description="Whether this request changed `following`; null while provisional."),
    ]

    @classmethod
    def of(cls, outcome: Outcome) -> FollowResponse:
        """Returns ``outcome`` as the API sends it."""
        return cls(
            following=outcome.on,
            followers=outcome.total,
            followers_at=outcome.at,
            changed=outcome.changed,
        )


class FollowListItem(ResponseModel):
    """A user in a list of followers or followed users."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user": {"id": "31", "nickname": "grace", "avatar": None},
                    "at": "2026-11-22T12:00:02.518304Z",
                    "mine": {"following": False},
                }
            ]
        }
    )

    user: UserCard
    at: Annotated[Time, Field(description="When the follow began.")]
    mine: Annotated[
        UserViewerState | None, Field(description="The caller's state; null without a session.")
    ]

    @classmethod
    def of(cls, person: Person) -> FollowListItem:
        """Returns ``person`` as the API sends it."""
        card = person.card
        return cls(
            user=UserCard.of(card) if card else UserCard.unknown(person.user_id),
            at=from_us(person.version_us),
            mine=None
            if person.followed_by_viewer is None
            else UserViewerState(following=person.followed_by_viewer),
        )
