"""Check-ins of a day and of a month."""

from __future__ import annotations

from datetime import date
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.commerce.checkins import daily_checkin
from plaza.commerce.checkins.schemas import CheckInsResponse, MonthParam
from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.infra.http.routes import BEARER, WRITES, Responses
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify

app = PlazaResolver(identify, tag="check-ins")


@app.put(
    "/checkins/today",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        {
            200: "The check-ins of this month.",
            202: "Accepted; not counted yet. Redis is unavailable.",
        }
    ),
)
def create_check_in() -> tuple[CheckInsResponse, int]:
    """Check in today.

    The profile's time zone decides which day it is. Idempotent: a day counts once.
    """
    month = daily_checkin.check_in(require_caller(app))
    return CheckInsResponse.of(month), 200 if month.exact else 202


@app.get("/checkins", security=BEARER, responses=Responses("The check-ins of the month."))
def get_check_ins(month: MonthParam = None) -> CheckInsResponse:
    """Get the check-ins of a month.

    Returns the days of a month on which the caller checked in, and the current streak.
    """
    first = None if month is None else date.fromisoformat(f"{month}-01")
    return CheckInsResponse.of(daily_checkin.read_month(require_caller(app), first))


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about check-ins."""
    return app.resolve(event, context)
