"""Check-ins: today's, and those of a month."""

from __future__ import annotations

from datetime import date
from typing import Any

from plaza.checkins import daily_checkin
from plaza.checkins.schemas import CheckIns, MonthParam
from plaza.infra.http import (
    BEARER,
    create_api,
    describe_problems,
    describe_response,
    require_caller,
    serve,
)

app = create_api()

_OWN: dict[str, Any] = {"security": [BEARER], "tags": ["check-ins"]}
_PROVISIONAL = "taken as a wish while Redis is away"
_PUT = _OWN | {
    "responses": describe_response(200, CheckIns, "this month")
    | describe_response(202, CheckIns, _PROVISIONAL)
    | describe_problems(401)
}
_GET = _OWN | {
    "responses": describe_response(200, CheckIns, "the month") | describe_problems(400, 401)
}


@app.put("/checkins/today", **_PUT)
def check_in() -> tuple[CheckIns, int]:
    """I am here today; once a day counts."""
    month = daily_checkin.check_in(require_caller(app))
    return CheckIns.of(month), 200 if month.exact else 202


@app.get("/checkins", **_GET)
def list_checkins(month: MonthParam) -> CheckIns:
    """On which days of a month I checked in, and my streak."""
    first = date.fromisoformat(f"{month}-01")
    return CheckIns.of(daily_checkin.read_month(require_caller(app), first))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about check-ins."""
    return serve(app, event, context)
