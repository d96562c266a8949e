"""Users, cards and profiles. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plaza.infra.runtime.errors import Conflict, NotFound
from plaza.people.users.zones import Zone

if TYPE_CHECKING:
    from plaza.core.counters import UserCounter


class UserMissing(NotFound):
    """The user does not exist."""


class PhoneTaken(Conflict):
    """The phone is another user's, or the user has another phone."""

    slug = "phone-taken"
    title = "Phone number taken"
    example = "The phone number belongs to another user."


@dataclass(frozen=True, slots=True)
class Card:
    """The name and the avatar (URL or None) of a user, as lists show them."""

    id: int
    nickname: str
    avatar: str | None

    @classmethod
    def unknown(cls, user_id: int) -> Card:
        """Return the card of an id that no user has."""
        return cls(user_id, "unknown user", None)


@dataclass(frozen=True, slots=True)
class Profile:
    """A user's card and totals.

    ``followers`` is the gate's count, ``followers_at`` its order token; the other totals are
    MySQL's, about a second old. ``exact`` is false while Redis is unavailable: ``followers`` is
    then MySQL's, too. ``following``: whether the caller follows the user, None for an anonymous
    caller. ``zone`` is set only in a user's own profile.
    """

    card: Card
    followers: int
    totals: UserCounter
    following: bool | None
    exact: bool
    followers_at: str | None = None
    zone: Zone | None = None


@dataclass(frozen=True, slots=True)
class User:
    """A user that signs in. ``is_reopened``: this sign-in opened the closed account again."""

    id: int
    nickname: str
    avatar: str | None
    is_reopened: bool = False
