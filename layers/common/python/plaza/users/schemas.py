"""Requests and responses of the API of users."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from plaza.infra.http import RequestModel, ResponseModel
from plaza.infra.texts import HTTPS_URL, LINE, check_line
from plaza.users.model import Card, Profile
from plaza.users.zones import DEFAULT, check_zone

Nickname = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=40),
    AfterValidator(check_line),
    Field(
        json_schema_extra={"pattern": LINE},
        description="One line with at least one visible character.",
    ),
]
AvatarUrl = Annotated[str, Field(pattern=HTTPS_URL, max_length=512, description="An https URL.")]

TimeZone = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_+/-]*$", max_length=64),
    AfterValidator(check_zone),
    Field(description="An IANA time zone name; it determines the user's current date."),
]


class UserCard(ResponseModel):
    """The name and the avatar of a user. ``avatar`` is a URL or null."""

    id: str
    nickname: str
    avatar: str | None

    @classmethod
    def of(cls, card: Card) -> UserCard:
        return cls(id=str(card.id), nickname=card.nickname, avatar=card.avatar)

    @classmethod
    def unknown(cls, user_id: int) -> UserCard:
        """Return the response for an id that no user has."""
        return cls(id=str(user_id), nickname="somebody", avatar=None)


class MyFollow(ResponseModel):
    """The caller's relation to a user."""

    following: bool


class UserProfile(ResponseModel):
    """A user and the user's totals. ``mine`` is null without a session, and at /users/me.

    ``exact`` is false while Redis is unavailable: ``followers`` is then about a second old, as the
    other totals always are.
    """

    id: str
    nickname: str
    avatar: str | None
    followers: int
    following: int
    posts: int
    likes_received: int
    collects_received: int
    mine: MyFollow | None
    exact: bool

    @classmethod
    def of(cls, profile: Profile) -> UserProfile:
        card, totals, following = profile.card, profile.totals, profile.following
        return cls(
            id=str(card.id),
            nickname=card.nickname,
            avatar=card.avatar,
            followers=profile.followers,
            following=totals.following_total,
            posts=totals.posts_total,
            likes_received=totals.likes_received_total,
            collects_received=totals.collects_received_total,
            mine=None if following is None else MyFollow(following=following),
            exact=profile.exact,
        )


class OwnProfile(UserProfile):
    """The caller's own profile, with the time zone."""

    time_zone: str

    @classmethod
    def of(cls, profile: Profile) -> OwnProfile:
        public = UserProfile.of(profile).model_dump()
        return cls(**public, time_zone=profile.zone.name if profile.zone else DEFAULT)


class ProfileChange(RequestModel):
    """Changes of the caller's profile, at least one. ``avatar`` null removes the avatar."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    # The defaults are never used: ``changes`` leaves out fields that were not sent.
    nickname: Nickname = Field(default_factory=str)
    avatar: AvatarUrl | None = Field(default_factory=lambda: None)
    time_zone: TimeZone = Field(default_factory=str)

    @model_validator(mode="after")
    def _require_a_field(self) -> ProfileChange:
        if not self.model_fields_set:
            raise ValueError("must have nickname, avatar or time_zone")
        return self

    @property
    def changes(self) -> dict[str, str | None]:
        """Return column -> value, of the fields that were sent."""
        return self.model_dump(exclude_unset=True)


class EndedSessions(ResponseModel):
    """How many sessions of a user were ended."""

    ended: int
