"""Recommended reviews of a shop and rankings of posts by likes.

Other contexts use ``vote_roll_up`` after they corrected the likes of reviews, operators
``watermarks``.
"""

from plaza.recommendations.model import (
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
    "vote_roll_up",
    "watermarks",
]
