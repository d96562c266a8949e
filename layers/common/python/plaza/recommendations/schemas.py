"""What clients get of recommendations and rankings."""

from __future__ import annotations

from plaza.content.schemas import Post
from plaza.recommendations.model import RankedPost


class PostInRanking(Post):
    """A post in a ranking. ``score``: the likes by which it stands there, which ``likes`` may be
    ahead of; within a window, those given less those taken back."""

    score: int

    @classmethod
    def at(cls, ranked: RankedPost, actor_id: int | None) -> PostInRanking:
        """What ``actor_id`` is told about it."""
        return cls(**dict(Post.of(ranked.post, actor_id)), score=ranked.likes)
