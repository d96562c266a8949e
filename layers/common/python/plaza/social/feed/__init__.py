"""The feed: posts of followed users, pushed to inboxes in Redis and rebuilt from MySQL.

Other contexts use ``inspection`` for the reconciliation.
"""

from plaza.social.feed.model import FeedPage

__all__ = ["FeedPage", "inspection"]
