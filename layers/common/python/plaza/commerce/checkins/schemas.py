"""Schemas of the API: check-ins."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import ConfigDict, Field

from plaza.commerce.checkins.model import Month
from plaza.infra.http.schemas import ResponseModel

MonthParam = Annotated[
    str | None,
    Query(
        pattern=r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])$",
        description="The month, as `YYYY-MM`; by default the caller's current one.",
    ),
]


class CheckInsResponse(ResponseModel):
    """The caller's check-ins of a month."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "today": "2026-11-22",
                    "month": "2026-11",
                    "days": [3, 20, 21, 22],
                    "total": 4,
                    "streak": 3,
                    "exact": True,
                },
                {
                    "today": "2026-11-22",
                    "month": "2026-11",
                    "days": None,
                    "total": None,
                    "streak": None,
                    "exact": False,
                },
            ]
        }
    )

    today: Annotated[date, Field(description="The date in the time zone of the caller's profile.")]
    month: Annotated[str, Field(description="The month, as `YYYY-MM`.")]
    days: Annotated[
        list[int] | None,
        Field(description="Days of the month with a check-in; null while it is provisional."),
    ]
    total: Annotated[int | None, Field(description="Number of `days`; null with them.")]
    streak: Annotated[
        int | None,
        Field(description="Consecutive days with a check-in, up to today or yesterday."),
    ]
    exact: Annotated[
        bool,
        Field(description="False while Redis is unavailable: recent check-ins may be missing."),
    ]

    @classmethod
    def of(cls, month: Month) -> CheckInsResponse:
        """Returns ``month`` as the API sends it."""
        return cls(
            today=month.today,
            month=month.first.isoformat()[:7],
            days=None if month.days is None else list(month.days),
            total=None if month.days is None else len(month.days),
            streak=month.streak,
            exact=month.exact,
        )
