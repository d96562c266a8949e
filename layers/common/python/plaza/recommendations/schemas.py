"""API models of rankings."""

from __future__ import annotations

from plaza.content.schemas import Post
from plaza.recommendations.model import RankedPost


class PostInRanking(Post):
    """A post in a ranking. ``score`` is the number of likes that it is ranked by, which may lag
    behind ``likes``; in a window, likes minus unlikes."""

    score: int

    @classmethod
    def at(cls, ranked: RankedPost, actor_id: int | None) -> PostInRanking:
        return cls(**dict(Post.of(ranked.post, actor_id)), score=ranked.likes)
