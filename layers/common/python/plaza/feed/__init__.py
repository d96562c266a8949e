"""The feed: what those whom I follow posted. Pushed to inboxes in Redis, rebuilt from MySQL."""

from plaza.feed.model import FeedPage

__all__ = [
    "FeedPage",
]
