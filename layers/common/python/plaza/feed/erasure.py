"""Drop the timelines of an erased user."""

from __future__ import annotations

from plaza.feed import redis_store
from plaza.feed.model import INBOX, POSTS, Timeline


def erase(user_id: int) -> None:
    """Drop the inbox and the posts of a user. The inboxes of others lose the posts when these are
    deleted. One round trip. Raises RedisDown."""
    redis_store.drop([Timeline(INBOX, user_id), Timeline(POSTS, user_id)])
