"""Totals that screens read again and again."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core import live
from plaza.core.live.schemas import References, TotalsResponse
from plaza.core.reactions import Target
from plaza.core.switches import current as current_switches
from plaza.core.targets import target_ids
from plaza.infra.http.resolver import PlazaResolver
from plaza.infra.http.routes import PUBLIC, BodyOf, Headers, LoggedAt, Responses
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify_poll

LOG_RATE = 0.01  # a screen polls hundreds of times an hour
_OFF_MAX_AGE_S = 60

app = PlazaResolver(identify_poll, tag="reactions")


@app.get(
    "/totals",
    security=PUBLIC,
    middlewares=[LoggedAt(LOG_RATE)],
    responses=Responses("The totals. `max-age` is the time until a client should ask again."),
)
def get_totals(
    of: References,
) -> tuple[Annotated[dict[str, Any], BodyOf(TotalsResponse)], int, Headers]:
    """Get the totals of up to 48 targets.

    For screens that show them: the same for all callers, and cached. A target that does not exist
    has zeros, a deleted one its last totals.
    """
    live.count_poll(app.client_ip, of)
    split = [(Target(*target_ids.parse_reference(text)), text.partition(":")[2]) for text in of]
    items = live.read_totals(split)
    max_age_s = current_switches().live_poll_s or _OFF_MAX_AGE_S
    return {"items": items}, 200, {"cache-control": f"public, max-age={max_age_s}, s-maxage=1"}


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about totals."""
    return app.resolve(event, context)
