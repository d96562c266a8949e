"""The feed: what those whom I follow posted. Pushed to inboxes in Redis, rebuilt from MySQL."""

from plaza.feed.feed import Feed

__all__ = [
    "Feed",
]
