"""Rankings of posts by likes in Redis, for their readers and their reconciliation."""

from plaza.core.reactions.redis_rankings import (
    drop_rankings,
    forget_posts,
    mark_ranking_complete,
    project_likes,
    ranking_key,
    read_ranked_posts,
    read_ranking,
    swap_ranking,
)

__all__ = [
    "drop_rankings",
    "forget_posts",
    "mark_ranking_complete",
    "project_likes",
    "ranking_key",
    "read_ranked_posts",
    "read_ranking",
    "swap_ranking",
]
