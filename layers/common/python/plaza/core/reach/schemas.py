"""Schemas of the API: anonymous ids, and visitors for operators."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Header, Query
from pydantic import ConfigDict, Field

from plaza.core.reach.model import MAX_DAYS, IssuedId, Reach, Visitors
from plaza.infra.http.schemas import ResponseModel

VisitorId = Annotated[
    str | None,
    Header(
        alias="X-Visitor-Id",
        max_length=100,
        description=(
            "An id that `POST /visitors` issued this week. Without a session it counts its client "
            "as one visitor; any other value of this length counts as none."
        ),
    ),
]
Days = Annotated[
    int, Query(ge=1, le=MAX_DAYS, description="Number of days in UTC, today included.")
]


class VisitorIdResponse(ResponseModel):
    """An anonymous id."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "visitor_id": "2026-11-16.FDd3L5s0kxYfQ1bVn2m0Aw.Zk5tq0c8e7lB4hX9yWvR2g",
                    "expires_in": 302400,
                }
            ]
        }
    )

    visitor_id: Annotated[str, Field(description="Value of the header `X-Visitor-Id`.")]
    expires_in: Annotated[
        int, Field(description="Seconds until it ends, with the week in UTC. Then ask for another.")
    ]

    @classmethod
    def of(cls, issued: IssuedId) -> VisitorIdResponse:
        """Returns ``issued`` as the API sends it."""
        return cls(visitor_id=issued.text, expires_in=issued.expires_in_s)


class DayReach(ResponseModel):
    """The visitors of a day."""

    day: date
    visitors: int

    @classmethod
    def of(cls, visitors: Visitors) -> DayReach:
        """Returns ``visitors`` as the API sends it."""
        return cls(day=visitors.first_day, visitors=visitors.number)


class WeekReach(ResponseModel):
    """The visitors of a week."""

    monday: Annotated[date, Field(description="Its first day, in UTC.")]
    visitors: int

    @classmethod
    def of(cls, visitors: Visitors) -> WeekReach:
        """Returns ``visitors`` as the API sends it."""
        return cls(monday=visitors.first_day, visitors=visitors.number)


class ReachResponse(ResponseModel):
    """Estimated numbers of visitors who viewed posts. Each number counts a visitor once."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "visitors": 1830,
                    "days": [
                        {"day": "2026-11-21", "visitors": 1204},
                        {"day": "2026-11-22", "visitors": 977},
                    ],
                    "weeks": [{"monday": "2026-11-16", "visitors": 4310}],
                }
            ]
        }
    )

    visitors: Annotated[int, Field(description="Visitors of the site in all of these days.")]
    days: Annotated[list[DayReach], Field(description="Each day, the earliest first.")]
    weeks: Annotated[
        list[WeekReach],
        Field(description="Each week that one of the days is in, whole, the earliest first."),
    ]

    @classmethod
    def of(cls, reach: Reach) -> ReachResponse:
        """Returns ``reach`` as the API sends it."""
        return cls(
            visitors=reach.total,
            days=[DayReach.of(visitors) for visitors in reach.days],
            weeks=[WeekReach.of(visitors) for visitors in reach.weeks],
        )
