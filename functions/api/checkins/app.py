"""Check-ins: today's, and those of a month."""

from __future__ import annotations

from datetime import date
from typing import Any

from plaza.checkins import checking_in
from plaza.checkins.contract import CheckIns, MonthAsked
from plaza.infra.http import BEARER, answers, api, caller, problems, serve

app = api()

_OWN: dict[str, Any] = {"security": [BEARER], "tags": ["check-ins"]}
_WISH = "taken as a wish while Redis is away"
_PUT = _OWN | {
    "responses": answers(200, CheckIns, "this month")
    | answers(202, CheckIns, _WISH)
    | problems(401)
}
_GET = _OWN | {"responses": answers(200, CheckIns, "the month") | problems(400, 401)}


@app.put("/checkins/today", **_PUT)
def check_in() -> tuple[CheckIns, int]:
    """I am here today; once a day counts."""
    month = checking_in.check_in(caller(app))
    return CheckIns.of(month), 200 if month.exact else 202


@app.get("/checkins", **_GET)
def list_checkins(month: MonthAsked) -> CheckIns:
    """On which days of a month I checked in, and my streak."""
    first = date.fromisoformat(f"{month}-01")
    return CheckIns.of(checking_in.read_month(caller(app), first))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about check-ins."""
    return serve(app, event, context)
