"""What readers are shown first: the best reviews of a shop, the most liked posts.

Other contexts use ``rolling_up`` for reviews whose votes were corrected.
"""

from plaza.recommendations.recommendations import (
    LENGTH,
    RankedPost,
    RankingPage,
    Rebuild,
    RecommendedPage,
)

__all__ = [
    "LENGTH",
    "RankedPost",
    "RankingPage",
    "Rebuild",
    "RecommendedPage",
    "rolling_up",
]
