"""What a user is to others. No I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plaza.infra.errors import NotFound
from plaza.users.zones import Zone

if TYPE_CHECKING:
    from plaza.counters import UserCounter


class UserMissing(NotFound):
    """There is no such user."""


@dataclass(frozen=True, slots=True)
class Card:
    """What stands beside everything that a user does: a name and a picture (URL, None: none)."""

    id: int
    nickname: str
    avatar: str | None

    def to_json(self) -> str:
        """As it stands in Redis, under a key that has the id."""
        return json.dumps([self.nickname, self.avatar], separators=(",", ":"))

    @classmethod
    def from_json(cls, user_id: int, text: str) -> Card:
        """What ``to_json`` wrote."""
        return cls(user_id, *json.loads(text))


@dataclass(frozen=True, slots=True)
class Profile:
    """A user as others see them: the card, and what they came to.

    ``followers`` is what the gate counts, the other totals are MySQL's, a second or so behind.
    ``following``: does who asks follow them; None when nobody in particular asks. ``exact`` is
    false while Redis is away, when the followers too are MySQL's. ``zone`` is for themselves
    alone; None where others look.
    """

    card: Card
    followers: int
    totals: UserCounter
    following: bool | None
    exact: bool
    zone: Zone | None = None


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who signs in."""

    id: int
    nickname: str
    avatar: str | None
