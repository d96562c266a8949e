"""Who follows whom: a reaction to a user, with rules of its own, and lists of people."""

from plaza.follows.following import follow, unfollow
from plaza.follows.follows import FOLLOW_LIMIT, FollowLimit, Person, Place, SelfFollow
from plaza.follows.listing import list_common, list_followers, list_following

__all__ = [
    "FOLLOW_LIMIT",
    "FollowLimit",
    "Person",
    "Place",
    "SelfFollow",
    "follow",
    "list_common",
    "list_followers",
    "list_following",
    "unfollow",
]
