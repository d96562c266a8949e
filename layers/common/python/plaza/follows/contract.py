"""What clients get about follows."""

from __future__ import annotations

from datetime import datetime

from plaza.follows.follows import Person
from plaza.infra.http import Answer
from plaza.infra.sql import from_us
from plaza.reactions import Outcome
from plaza.users.contract import MyFollow, UserCard


class Followed(Answer):
    """A follow as it is now. ``followers`` and ``changed`` are null when the wish is on its way."""

    following: bool
    followers: int | None
    changed: bool | None

    @classmethod
    def of(cls, outcome: Outcome) -> Followed:
        """What to answer to ``outcome``."""
        return cls(following=outcome.on, followers=outcome.total, changed=outcome.changed)


class Listed(Answer):
    """Somebody in a list, and since when. ``mine`` is null for callers without a session."""

    user: UserCard
    at: datetime
    mine: MyFollow | None

    @classmethod
    def of(cls, person: Person) -> Listed:
        """What to answer about ``person``."""
        card = person.card
        return cls(
            user=UserCard.of(card) if card else UserCard.unknown(person.user_id),
            at=from_us(person.ver_us),
            mine=None if person.followed is None else MyFollow(following=person.followed),
        )
