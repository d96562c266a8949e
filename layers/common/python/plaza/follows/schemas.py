"""What clients get about follows."""

from __future__ import annotations

from datetime import datetime

from plaza.follows.model import Person
from plaza.infra.http import ResponseModel
from plaza.infra.sql import from_us
from plaza.reactions import Outcome
from plaza.users.schemas import MyFollow, UserCard


class FollowResponse(ResponseModel):
    """A follow as it is now. ``followers`` and ``changed`` are null when the wish is on its way."""

    following: bool
    followers: int | None
    changed: bool | None

    @classmethod
    def of(cls, outcome: Outcome) -> FollowResponse:
        """What to answer to ``outcome``."""
        return cls(following=outcome.on, followers=outcome.total, changed=outcome.changed)


class FollowListItem(ResponseModel):
    """Somebody in a list, and since when. ``mine`` is null for callers without a session."""

    user: UserCard
    at: datetime
    mine: MyFollow | None

    @classmethod
    def of(cls, person: Person) -> FollowListItem:
        """What to answer about ``person``."""
        card = person.card
        return cls(
            user=UserCard.of(card) if card else UserCard.unknown(person.user_id),
            at=from_us(person.version_us),
            mine=None
            if person.followed_by_viewer is None
            else MyFollow(following=person.followed_by_viewer),
        )
