"""Follows: reactions to a user, with a limit of their own, and lists of users."""

from plaza.people.follows.follow_user import follow, unfollow
from plaza.people.follows.model import FOLLOW_LIMIT, FollowCursor, FollowLimit, Person, SelfFollow
from plaza.people.follows.queries import list_common, list_followers, list_following

__all__ = [
    "FOLLOW_LIMIT",
    "FollowCursor",
    "FollowLimit",
    "Person",
    "SelfFollow",
    "follow",
    "list_common",
    "list_followers",
    "list_following",
    "unfollow",
]
