"""Schemas of the API: rankings, and scores of reviews."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import ConfigDict, Field

from plaza.core.reactions.model import Window
from plaza.infra.http.schemas import ResponseModel
from plaza.social.content.schemas import PREVIEW_EXAMPLE, PostPreview
from plaza.social.recommendations.model import ReviewScore

InWindow = Annotated[
    Window,
    Query(
        description=(
            "Which likes count: of the last 24 hours, of the last 7 days, or all. `hot`: the newer "
            "a like, the more it counts."
        )
    ),
]


class RankedPostResponse(PostPreview):
    """A post in a ranking."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**PREVIEW_EXAMPLE, "score": 40}]})

    score: Annotated[
        int,
        Field(
            description=(
                "What the ranking orders by: likes given minus taken back within the window. In "
                "`hot` each like has a weight, so only scores of one page compare. `likes` may be "
                "newer."
            )
        ),
    ]


class ScoreComponentResponse(ResponseModel):
    """A component of the score of a review."""

    name: Annotated[
        str,
        Field(
            description=(
                "`likes` (likes), `length` (characters), `images`, `age` (days), `author` (likes "
                "that the author received)."
            )
        ),
    ]
    value: Annotated[int, Field(description="The measured value.")]
    points: Annotated[
        int,
        Field(
            description=(
                "Of 1,000,000, rounded down: value / (value + half), of `age` half / (value + "
                "half)."
            )
        ),
    ]
    weight: Annotated[int, Field(description="Its weight, a setting.")]
    half: Annotated[int, Field(description="The value that gives half of the points, a setting.")]


class ReviewScoreResponse(ResponseModel):
    """The score of a review and how it comes about."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "review_id": "9200001",
                    "shop_id": "9000001",
                    "score": 511566,
                    "rank": 3,
                    "components": [
                        {"name": "likes", "value": 4, "points": 500000, "weight": 50, "half": 4},
                        {
                            "name": "length",
                            "value": 150,
                            "points": 428571,
                            "weight": 15,
                            "half": 200,
                        },
                        {"name": "images", "value": 1, "points": 500000, "weight": 10, "half": 1},
                        {"name": "age", "value": 10, "points": 900000, "weight": 15, "half": 90},
                        {
                            "name": "author",
                            "value": 7,
                            "points": 122807,
                            "weight": 10,
                            "half": 50,
                        },
                    ],
                }
            ]
        }
    )

    review_id: str
    shop_id: str
    score: Annotated[
        int, Field(description="The weighted mean of the points, rounded down: 0 to 1,000,000.")
    ]
    rank: Annotated[
        int | None,
        Field(description="Rank in the list that readers get, from 1; null if it is not in it."),
    ]
    components: list[ScoreComponentResponse]

    @classmethod
    def of(cls, explained: ReviewScore) -> ReviewScoreResponse:
        """Returns ``explained`` as the API sends it."""
        return cls(
            review_id=str(explained.review_id),
            shop_id=str(explained.shop_id),
            score=explained.score,
            rank=explained.rank,
            components=[
                ScoreComponentResponse(**component._asdict()) for component in explained.components
            ],
        )
