"""The feed: what those whom I follow posted. Pushed to inboxes in Redis, rebuilt from MySQL."""

from plaza.feed.fanning_out import fan_out
from plaza.feed.feed import FanOut, read_pairs, read_timelines
from plaza.feed.following import apply_follow_changes
from plaza.feed.reading import Feed, read_feed
from plaza.feed.rebuilding import INBOXES, rebuild

__all__ = [
    "INBOXES",
    "FanOut",
    "Feed",
    "apply_follow_changes",
    "fan_out",
    "read_feed",
    "read_pairs",
    "read_timelines",
    "rebuild",
]
