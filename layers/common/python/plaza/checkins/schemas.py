"""Responses of the API of check-ins."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import Field

from plaza.checkins.model import Month
from plaza.infra.http import ResponseModel

MonthParam = Annotated[
    str,
    Query(pattern=r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])$", description="A month, YYYY-MM."),
]


class CheckIns(ResponseModel):
    """The caller's check-ins of a month, and the streak: consecutive days up to today or yesterday.

    ``today`` is the date in the time zone of the caller's profile. ``days`` are the days of the
    month with a check-in, ``total`` is their number. They and ``streak`` are null for a provisional
    check-in, which is counted later.
    """

    today: date
    month: Annotated[str, Field(description="YYYY-MM")]
    days: list[int] | None
    total: int | None
    streak: int | None
    exact: bool

    @classmethod
    def of(cls, month: Month) -> CheckIns:
        return cls(
            today=month.today,
            month=month.first.isoformat()[:7],
            days=None if month.days is None else list(month.days),
            total=None if month.days is None else len(month.days),
            streak=month.streak,
            exact=month.exact,
        )
