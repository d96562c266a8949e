"""Users, cards, profiles and erasures. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from plaza.infra.runtime.errors import Conflict, NotFound
from plaza.people.users.zones import Zone

if TYPE_CHECKING:
    from plaza.core.counters import UserCounter

RETURN_S = 7 * 86_400
"""How long a sign-in opens a closed account again."""

SETTLE_S = 120
"""Longer than a request, and than a session in Redis is used without a look at MySQL."""

KEPT_OPEN_S = 15 * 86_400
"""Longer than a message stays on a queue (14 days)."""


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


class Erasure(NamedTuple):
    """The erasure of a user. Passes erase from ``begins_at`` on.

    ``erased_at`` is when a pass found nothing more. Messages that were on their way may still bring
    a row back, so later passes follow, until ``closed_at``. ``account_closed_at``: None if it began
    at once. ``is_waiting``: the account is closed, and may open again.
    """

    user_id: int
    begins_at: datetime
    account_closed_at: datetime | None
    erased_at: datetime | None
    closed_at: datetime | None
    is_waiting: bool

    @property
    def requested_at(self) -> datetime:
        """When the user or an admin asked for it."""
        return self.account_closed_at or self.begins_at

    @property
    def erases_at(self) -> datetime | None:
        """Until when a sign-in opens the account again; None if none could."""
        return self.account_closed_at and self.account_closed_at + timedelta(seconds=RETURN_S)

    @property
    def state(self) -> Literal["account-closed", "erasing", "erased", "closed"]:
        """How far it is."""
        if self.is_waiting:
            return "account-closed"
        if self.closed_at:
            return "closed"
        return "erased" if self.erased_at else "erasing"
