"""Recommended reviews of a shop and rankings of posts by likes.

Other contexts use ``like_roll_up`` after they corrected the likes of reviews, ``post_hours`` to
compare hourly likes with the log, operators ``watermarks``.
"""

from plaza.social.recommendations.model import (
    LIST_LENGTH,
    RankedPost,
    RankingPage,
    RebuildLists,
    RecommendedPage,
)

__all__ = [
    "LIST_LENGTH",
    "RankedPost",
    "RankingPage",
    "RebuildLists",
    "RecommendedPage",
    "like_roll_up",
    "post_hours",
    "watermarks",
]
