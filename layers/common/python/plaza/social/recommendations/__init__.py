"""Recommended reviews of a shop and rankings of posts by likes.

Operators use ``watermarks``.
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
    "watermarks",
]
