"""Recommended reviews of a shop and rankings of posts by likes."""

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
]
