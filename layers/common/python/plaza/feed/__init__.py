"""The feed: what those whom I follow posted. Pushed to inboxes in Redis, rebuilt from MySQL."""

from plaza.content import FANOUTS
from plaza.feed.fanning_out import fan_out
from plaza.feed.following import apply_follow_changes
from plaza.feed.queues import INBOXES
from plaza.feed.reading import Feed, read_feed
from plaza.feed.rebuilding import rebuild
from plaza.reactions import FOLLOWS

__all__ = [
    "FANOUTS",
    "FOLLOWS",
    "INBOXES",
    "Feed",
    "apply_follow_changes",
    "fan_out",
    "read_feed",
    "rebuild",
]
