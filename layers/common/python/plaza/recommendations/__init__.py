"""What readers are shown first: the best reviews of a shop, the most liked posts.

Other contexts use ``vote_roll_up`` for reviews whose votes were corrected.
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
]
