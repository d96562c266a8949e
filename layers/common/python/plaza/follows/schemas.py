"""API models of follows."""

from __future__ import annotations

from datetime import datetime

from plaza.follows.model import Person
from plaza.infra.http import ResponseModel
from plaza.infra.sql import from_us
from plaza.reactions import Outcome
from plaza.users.schemas import MyFollow, UserCard


class FollowResponse(ResponseModel):
    """The state of a follow. ``followers`` and ``changed`` are null while it is provisional."""

    following: bool
    followers: int | None
    changed: bool | None

    @classmethod
    def of(cls, outcome: Outcome) -> FollowResponse:
        return cls(following=outcome.on, followers=outcome.total, changed=outcome.changed)


class FollowListItem(ResponseModel):
    """A user in a list, and the time of the follow. ``mine`` is null for anonymous callers."""

    user: UserCard
    at: datetime
    mine: MyFollow | None

    @classmethod
    def of(cls, person: Person) -> FollowListItem:
        card = person.card
        return cls(
            user=UserCard.of(card) if card else UserCard.unknown(person.user_id),
            at=from_us(person.version_us),
            mine=None
            if person.followed_by_viewer is None
            else MyFollow(following=person.followed_by_viewer),
        )
