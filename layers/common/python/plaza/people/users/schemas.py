"""Schemas of the API: users and profiles."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from plaza.core.reactions import FOLLOW
from plaza.core.reactions.schemas import Reactions, ReactionTotal
from plaza.infra.http.schemas import ORDER_EXAMPLE, OrderToken, RequestModel, ResponseModel, Time
from plaza.infra.http.texts import HTTPS_URL, LINE_RULE, VISIBLE, FieldError, check_line, trim
from plaza.infra.mysql.sql import from_us
from plaza.people.users.model import Card, Erasure, Profile
from plaza.people.users.zones import DEFAULT, check_zone

if TYPE_CHECKING:
    from plaza.people.users.likers import ListedLiker


def _check_zone(name: str) -> str:
    try:
        return check_zone(name)
    except ValueError as error:
        raise FieldError("not-listed", str(error)) from None


Nickname = Annotated[
    str,
    Field(
        min_length=1,
        max_length=40,
        description=f"{LINE_RULE} Spaces and invisible characters around it are removed.",
        json_schema_extra={"pattern": VISIBLE},
    ),
    BeforeValidator(trim),
    AfterValidator(check_line),
]
AvatarUrl = Annotated[str, Field(pattern=HTTPS_URL, max_length=512, description="An https URL.")]
TimeZone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z][A-Za-z0-9_+/-]*$",
        description=(
            "Name of a zone in the IANA time zone database, such as `Europe/Berlin`. It decides "
            "which day it is for check-ins."
        ),
        json_schema_extra={"format": "time-zone"},
    ),
    AfterValidator(_check_zone),
]

_TOTALS_EXAMPLE: dict[str, Any] = {
    "followers": 42,
    "followers_at": ORDER_EXAMPLE,
    "following": 17,
    "posts": 5,
    "likes_received": 310,
    "collects_received": 28,
}


class UserCard(ResponseModel):
    """The name and the avatar of a user, as lists show them."""

    id: str
    nickname: str
    avatar: Annotated[str | None, Field(description="URL of the avatar; null for none.")]

    @classmethod
    def of(cls, card: Card) -> UserCard:
        """Returns ``card`` as the API sends it."""
        return cls(id=str(card.id), nickname=card.nickname, avatar=card.avatar)

    @classmethod
    def unknown(cls, user_id: int) -> UserCard:
        """Returns the card of an id that no user has."""
        return cls.of(Card.unknown(user_id))


class UserViewerState(ResponseModel):
    """What the caller did to a user."""

    following: Annotated[bool, Field(description="Whether the caller follows the user.")]


class ProfileViewerState(UserViewerState):
    """What the caller did to the user of a profile."""

    blocked: Annotated[
        bool | None,
        Field(description="Whether the caller blocks the user; null while it cannot be read."),
    ]


class UserProfile(ResponseModel):
    """The public profile of a user."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "31",
                    "nickname": "grace",
                    "avatar": "https://images.example/31.jpg",
                    **_TOTALS_EXAMPLE,
                    "mine": {"following": True, "blocked": False},
                    "reactions": {"follow": {"total": 42, "at": ORDER_EXAMPLE, "mine": True}},
                    "exact": True,
                }
            ]
        }
    )

    id: str
    nickname: str
    avatar: Annotated[str | None, Field(description="URL of the avatar; null for none.")]
    followers: Annotated[int, Field(description="Users who follow this user.")]
    followers_at: OrderToken
    following: Annotated[int, Field(description="Users whom this user follows.")]
    posts: Annotated[int, Field(description="Posts of the user that are not deleted.")]
    likes_received: Annotated[int, Field(description="Likes of the user's content.")]
    collects_received: Annotated[int, Field(description="Collects of the user's posts.")]
    mine: Annotated[
        ProfileViewerState | None,
        Field(description="The caller's state; null without a session and for the caller."),
    ]
    reactions: Reactions
    exact: Annotated[
        bool,
        Field(
            description=(
                "False while Redis is unavailable: `followers` may be a second or two behind."
            )
        ),
    ]

    @classmethod
    def of(cls, profile: Profile, blocked: Collection[int] | None = None) -> UserProfile:
        """Returns ``profile`` as the API sends it to a caller who blocks ``blocked``; None: not
        known."""
        card, totals, following = profile.card, profile.totals, profile.following
        return cls(
            id=str(card.id),
            nickname=card.nickname,
            avatar=card.avatar,
            followers=profile.followers,
            followers_at=profile.followers_at,
            following=totals.following_total,
            posts=totals.posts_total,
            likes_received=totals.likes_received_total,
            collects_received=totals.collects_received_total,
            mine=None
            if following is None
            else ProfileViewerState(
                following=following, blocked=None if blocked is None else card.id in blocked
            ),
            reactions={
                FOLLOW.name: ReactionTotal(
                    total=profile.followers, at=profile.followers_at, mine=following
                )
            },
            exact=profile.exact,
        )


class OwnProfile(UserProfile):
    """The caller's own profile."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "7",
                    "nickname": "ada",
                    "avatar": None,
                    **_TOTALS_EXAMPLE,
                    "mine": None,
                    "reactions": {"follow": {"total": 42, "at": ORDER_EXAMPLE, "mine": None}},
                    "exact": True,
                    "time_zone": "Europe/Berlin",
                }
            ]
        }
    )

    time_zone: Annotated[str, Field(description="Name of a zone in the IANA database.")]

    @classmethod
    def of(cls, profile: Profile, blocked: Collection[int] | None = None) -> OwnProfile:
        """Returns ``profile`` as the API sends it to its user."""
        public = UserProfile.of(profile, blocked).model_dump()
        return cls(**public, time_zone=profile.zone.name if profile.zone else DEFAULT)


class ProfileUpdateRequest(RequestModel):
    """The fields of the profile to change: at least one."""

    model_config = ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            "examples": [{"nickname": "ada", "time_zone": "Europe/Berlin"}],
        }
    )

    # A field that is not sent is not in ``changes``; its default is never used.
    nickname: Nickname = Field(default_factory=str)
    avatar: Annotated[AvatarUrl | None, Field(description="Null removes the avatar.")] = Field(
        default_factory=lambda: None
    )
    time_zone: TimeZone = Field(default_factory=str)

    @model_validator(mode="after")
    def _require_a_field(self) -> ProfileUpdateRequest:
        if not self.model_fields_set:
            raise FieldError("missing", "send nickname, avatar or time_zone")
        return self

    @property
    def changes(self) -> dict[str, str | None]:
        """The fields that were sent, by column of the user."""
        return self.model_dump(exclude_unset=True)


class EndSessionsResponse(ResponseModel):
    """The result of ending a user's sessions."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ended": 2}]})

    ended: Annotated[int, Field(description="Number of sessions that were ended.")]


class Liker(ResponseModel):
    """A user who reacted to a target."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": "31",
                    "user": {"id": "31", "nickname": "grace", "avatar": None},
                    "at": "2026-11-22T12:00:02.518304Z",
                }
            ]
        }
    )

    user_id: str
    user: UserCard
    at: Annotated[Time, Field(description="When the user reacted.")]

    @classmethod
    def of(cls, liker: ListedLiker) -> Liker:
        """Returns ``liker`` as the API sends it."""
        card = UserCard.of(liker.card)
        return cls(user_id=card.id, user=card, at=from_us(liker.version_us))


class ErasureResponse(ResponseModel):
    """The erasure of an account."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": "7",
                    "state": "account-closed",
                    "requested_at": "2026-11-22T12:00:00.518000Z",
                    "erases_at": "2026-11-29T12:00:00.518000Z",
                    "erased_at": None,
                    "closed_at": None,
                },
                {
                    "user_id": "7",
                    "state": "erased",
                    "requested_at": "2026-11-22T12:00:00.518000Z",
                    "erases_at": "2026-11-29T12:00:00.518000Z",
                    "erased_at": "2026-11-29T12:06:11.020000Z",
                    "closed_at": None,
                },
            ]
        }
    )

    user_id: str
    state: Annotated[
        Literal["account-closed", "erasing", "erased", "closed"],
        Field(
            description=(
                "`account-closed`: the next sign-in opens it again, until `erases_at`. "
                "`erased`: nothing was found any more. `closed`: 15 days later; until then what "
                "late messages bring back is erased again."
            )
        ),
    ]
    requested_at: Time
    erases_at: Annotated[
        Time | None,
        Field(description="When its data begins to be erased. Null if that was at once."),
    ]
    erased_at: Time | None
    closed_at: Time | None

    @classmethod
    def of(cls, erasure: Erasure) -> ErasureResponse:
        """Returns ``erasure`` as the API sends it."""
        return cls(
            user_id=str(erasure.user_id),
            state=erasure.state,
            requested_at=erasure.requested_at.replace(tzinfo=UTC),
            erases_at=erasure.erases_at and erasure.erases_at.replace(tzinfo=UTC),
            erased_at=erasure.erased_at and erasure.erased_at.replace(tzinfo=UTC),
            closed_at=erasure.closed_at and erasure.closed_at.replace(tzinfo=UTC),
        )
