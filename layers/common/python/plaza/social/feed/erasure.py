"""Drop the timelines of an erased user."""

from __future__ import annotations

from plaza.infra.runtime.clock import Deadline
from plaza.social.feed import redis_store
from plaza.social.feed.model import INBOX, POSTS, Timeline


def erase(user_id: int, _: Deadline) -> int:
    """Drop the inbox, older posts of it and the posts of a user; return 0: MySQL has none of them.
    The inboxes of others lose the posts when these are deleted. Two round trips. Raises RedisDown.
    """
    redis_store.drop([Timeline(INBOX, user_id), Timeline(POSTS, user_id)])
    redis_store.drop_older(user_id)
    return 0
