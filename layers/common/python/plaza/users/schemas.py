"""What clients send and get about users."""

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
    Field(json_schema_extra={"pattern": LINE}, description="one line with something to see in it"),
]
AvatarUrl = Annotated[str, Field(pattern=HTTPS_URL, max_length=512, description="an https URL")]

TimeZone = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_+/-]*$", max_length=64),
    AfterValidator(check_zone),
    Field(description="a name of the IANA time zone database; it decides which day it is for me"),
]


class UserCard(ResponseModel):
    """Who somebody is, in short. ``avatar`` is a URL, null for none."""

    id: str
    nickname: str
    avatar: str | None

    @classmethod
    def of(cls, card: Card) -> UserCard:
        """What to answer about the user of ``card``."""
        return cls(id=str(card.id), nickname=card.nickname, avatar=card.avatar)

    @classmethod
    def unknown(cls, user_id: int) -> UserCard:
        """What to answer about an id that no user has."""
        return cls(id=str(user_id), nickname="somebody", avatar=None)


class MyFollow(ResponseModel):
    """What I am to a user."""

    following: bool


class UserProfile(ResponseModel):
    """A user and their totals. ``mine`` is null without a session, and of oneself at /users/me.

    ``exact`` is false while Redis is away: the followers too are a second or so behind then.
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
        """What to answer about ``profile``."""
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
    """My profile: what others see of me, and my time zone."""

    time_zone: str

    @classmethod
    def of(cls, profile: Profile) -> OwnProfile:
        """What to answer about ``profile`` to whose it is."""
        public = UserProfile.of(profile).model_dump()
        return cls(**public, time_zone=profile.zone.name if profile.zone else DEFAULT)


class ProfileChange(RequestModel):
    """What to change of the own profile: at least one of them. ``avatar`` null removes it."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    # What isn't said is not in ``changes``; these stand for nothing.
    nickname: Nickname = Field(default_factory=str)
    avatar: AvatarUrl | None = Field(default_factory=lambda: None)
    time_zone: TimeZone = Field(default_factory=str)

    @model_validator(mode="after")
    def _require_a_field(self) -> ProfileChange:
        if not self.model_fields_set:
            raise ValueError("say nickname, avatar or time_zone")
        return self

    @property
    def changes(self) -> dict[str, str | None]:
        """What was said, by column of the user."""
        return self.model_dump(exclude_unset=True)


class EndedSessions(ResponseModel):
    """How many sessions of a user were ended."""

    ended: int
