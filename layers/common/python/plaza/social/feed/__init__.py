"""The feed: posts of followed users, pushed to inboxes in Redis and rebuilt from MySQL.

Other contexts use ``erasure`` and ``export``, and ``inspection`` for the reconciliation.
"""

from plaza.social.feed.model import FeedPage

__all__ = ["FeedPage", "erasure", "export", "inspection"]
