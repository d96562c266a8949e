"""What readers are shown first: the best reviews of a shop, the most liked posts."""

from plaza.recommendations.mysql_votes import take_totals
from plaza.recommendations.queues import RECOMMENDATIONS
from plaza.recommendations.ranking import RankedPost, RankingPage, rank, refresh_rankings
from plaza.recommendations.recommendations import LENGTH, Rebuild
from plaza.recommendations.recommending import (
    RecommendedPage,
    rebuild_recommendations,
    recommend,
    refresh_recommendations,
)
from plaza.recommendations.rolling_up import roll_up_votes

__all__ = [
    "LENGTH",
    "RECOMMENDATIONS",
    "RankedPost",
    "RankingPage",
    "Rebuild",
    "RecommendedPage",
    "rank",
    "rebuild_recommendations",
    "recommend",
    "refresh_rankings",
    "refresh_recommendations",
    "roll_up_votes",
    "take_totals",
]
