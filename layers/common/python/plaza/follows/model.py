"""The rules of following, and what stands in a list of people. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.errors import Conflict
from plaza.users import Card

FOLLOW_LIMIT = 5000


class SelfFollow(Conflict):
    """Nobody follows themselves."""

    slug = "self-follow"
    title = "Users cannot follow themselves"


class FollowLimit(Conflict):
    """A user follows as many as anybody may."""

    slug = "follow-limit"
    title = "Follow limit reached"


class Person(NamedTuple):
    """Somebody in a list, since when (``version_us``), and if who asks follows them.

    ``card`` is None for an id that no user has, ``followed_by_viewer`` for anonymous callers.
    """

    user_id: int
    card: Card | None
    version_us: int
    followed_by_viewer: bool | None


class FollowPosition(NamedTuple):
    """A place in a list of people: ordered by ``version_us``, then by id."""

    version_us: int
    user_id: int
