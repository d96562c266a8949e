"""Rules of follows, and entries of lists of users. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.errors import Conflict
from plaza.people.users import Card

FOLLOW_LIMIT = 5000


class SelfFollow(Conflict):
    """A user cannot follow itself."""

    slug = "self-follow"
    title = "Users cannot follow themselves"
    example = "User 7 is your own user. Follow another one."


class FollowLimit(Conflict):
    """The actor follows FOLLOW_LIMIT users."""

    slug = "follow-limit"
    title = "Follow limit reached"
    example = "You follow 5000 users. Unfollow one first."


class Person(NamedTuple):
    """A user in a list, the time of the follow, and whether the caller follows the user. ``card``
    is None for an id without a user, ``followed_by_viewer`` for anonymous callers."""

    user_id: int
    card: Card | None
    version_us: int
    followed_by_viewer: bool | None


class FollowCursor(NamedTuple):
    """A cursor in a list of users, ordered by ``version_us``, then by id."""

    version_us: int
    user_id: int
