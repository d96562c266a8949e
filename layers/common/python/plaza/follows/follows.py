"""The rules of following, and what stands in a list of people. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.errors import Conflict
from plaza.users import Card

FOLLOW_LIMIT = 5000


class SelfFollow(Conflict):
    """Nobody follows themselves."""

    slug = "self-follow"
    title = "You can't follow yourself"


class FollowLimit(Conflict):
    """A user follows as many as anybody may."""

    slug = "follow-limit"
    title = "You follow as many as anybody may"


class Person(NamedTuple):
    """Somebody in a list, since when (``ver_us``), and if who asks follows them.

    ``card`` is None for an id that no user has, ``followed`` when nobody in particular asks.
    """

    user_id: int
    card: Card | None
    ver_us: int
    followed: bool | None


class Place(NamedTuple):
    """A place in a list of people: they come by ``ver_us``, and by id where that is the same."""

    ver_us: int
    user_id: int
