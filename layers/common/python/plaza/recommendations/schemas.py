"""Schemas of the API: rankings."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from plaza.content.schemas import POST_EXAMPLE, Post
from plaza.recommendations.model import RankedPost


class RankedPostResponse(Post):
    """A post in a ranking."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**POST_EXAMPLE, "score": 40}]})

    score: Annotated[
        int,
        Field(
            description=(
                "Likes that the ranking counted: given minus taken back within the window. `likes` "
                "may be newer."
            )
        ),
    ]

    @classmethod
    def at(cls, ranked: RankedPost, actor_id: int | None) -> RankedPostResponse:
        """Returns ``ranked`` as the API sends it to ``actor_id``."""
        return cls(**dict(Post.of(ranked.post, actor_id)), score=ranked.likes)
