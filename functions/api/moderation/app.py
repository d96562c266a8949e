"""Reports, and what moderators hide. All but reporting is for moderators."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.idempotency import IdempotentRequest, KeyReused
from plaza.core.reactions import Target
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.http.requests import Id, read_id
from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.infra.http.routes import BEARER, MODERATOR, WRITES, Responses
from plaza.infra.http.schemas import Cursor, IdempotencyKey, Limit, Page
from plaza.infra.runtime.errors import Gone, NotFound
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify
from plaza.social.moderation import reports
from plaza.social.moderation.model import AlreadyReported, ReportResolved
from plaza.social.moderation.schemas import (
    HiddenResponse,
    OpenReport,
    OutcomeRequest,
    ReportRequest,
    ReportResponse,
)

if TYPE_CHECKING:
    from plaza.social.content import commands
else:  # reports hide nothing
    commands = LazyModule("plaza.social.content.commands")

app = PlazaResolver(identify, tag="moderation")

_CREATED = "Created by this request, or by an earlier one with the same key."
_HIDDEN = Responses("It is hidden.", NotFound, Gone)
_SHOWN = Responses("It is not hidden.", NotFound, Gone, example=1)


@app.post(
    "/reports",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses({201: _CREATED}, NotFound, AlreadyReported, KeyReused, Gone),
)
def create_report(request: ReportRequest, key: IdempotencyKey = None) -> tuple[ReportResponse, int]:
    """Report content or a user.

    A user has at most one open report of a target. With an `Idempotency-Key` the request can be
    repeated.
    """
    draft = request.to_draft(require_caller(app))
    attempt = IdempotentRequest.of(key, {"report": asdict(draft)}) if key else None
    return ReportResponse.of(reports.create(draft, request.target.id, attempt)), 201


@app.get("/reports/<report_id>", security=BEARER, responses=Responses("The report.", NotFound))
def get_report(report_id: Id) -> ReportResponse:
    """Get a report of the caller.

    Returns its outcome once it is resolved.
    """
    reporter_id = require_caller(app)
    return ReportResponse.of(reports.read_own(read_id(report_id, "report"), reporter_id))


@app.get("/ops/reports", security=MODERATOR, responses=Responses("A page of open reports."))
def list_open_reports(limit: Limit = 20, cursor: Cursor = None) -> Page[OpenReport]:
    """List open reports.

    Oldest first, with the beginning of the content that they are about. For moderators.
    """
    after_id = unpack_cursor(cursor, (int,))[0] if cursor else 0
    page, last = reports.list_open(after_id, limit)
    return Page(
        items=[OpenReport.at(report, content) for report, content in page],
        next=pack_cursor(last) if last else None,
    )


@app.put(
    "/ops/reports/<report_id>/outcome",
    security=MODERATOR,
    responses=Responses("The resolved report.", NotFound, ReportResolved),
)
def resolve_report(report_id: Id, request: OutcomeRequest) -> ReportResponse:
    """Resolve a report.

    The report leaves the queue; the content is hidden by a request of its own. Idempotent; another
    outcome than the first one is a 409. For moderators.
    """
    operator_id = require_caller(app)
    return ReportResponse.of(
        reports.resolve(
            read_id(report_id, "report"), request.outcome, operator_id, app.caller.key_id
        )
    )


@app.put("/ops/posts/<post_id>/hidden", security=MODERATOR, responses=_HIDDEN)
def hide_post(post_id: Id) -> HiddenResponse:
    """Hide a post.

    Only its author gets it then, marked as hidden. It leaves lists, feeds, rankings and
    recommendations within 2 seconds, and stays counted. Idempotent. For moderators.
    """
    return _hide("post", post_id)


@app.delete("/ops/posts/<post_id>/hidden", security=MODERATOR, responses=_SHOWN)
def show_post(post_id: Id) -> HiddenResponse:
    """Show a hidden post again.

    Idempotent. For moderators.
    """
    return _show("post", post_id)


@app.put("/ops/comments/<comment_id>/hidden", security=MODERATOR, responses=_HIDDEN)
def hide_comment(comment_id: Id) -> HiddenResponse:
    """Hide a comment.

    Only its author gets it then, marked as hidden. It leaves lists, feeds, rankings and
    recommendations within 2 seconds, and stays counted. Idempotent. For moderators.
    """
    return _hide("comment", comment_id)


@app.delete("/ops/comments/<comment_id>/hidden", security=MODERATOR, responses=_SHOWN)
def show_comment(comment_id: Id) -> HiddenResponse:
    """Show a hidden comment again.

    Idempotent. For moderators.
    """
    return _show("comment", comment_id)


@app.put("/ops/reviews/<review_id>/hidden", security=MODERATOR, responses=_HIDDEN)
def hide_review(review_id: Id) -> HiddenResponse:
    """Hide a review.

    Only its author gets it then, marked as hidden. It leaves lists, feeds, rankings and
    recommendations within 2 seconds, and stays counted. Idempotent. For moderators.
    """
    return _hide("review", review_id)


@app.delete("/ops/reviews/<review_id>/hidden", security=MODERATOR, responses=_SHOWN)
def show_review(review_id: Id) -> HiddenResponse:
    """Show a hidden review again.

    Idempotent. For moderators.
    """
    return _show("review", review_id)


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about moderation."""
    return app.resolve(event, context)


def _hide(target_type: str, target_id: str) -> HiddenResponse:
    target, moderator_id = Target(target_type, read_id(target_id, target_type)), require_caller(app)
    commands.hide(target, moderator_id, app.caller.key_id)
    return HiddenResponse(hidden=True)


def _show(target_type: str, target_id: str) -> HiddenResponse:
    target, moderator_id = Target(target_type, read_id(target_id, target_type)), require_caller(app)
    commands.show(target, moderator_id, app.caller.key_id)
    return HiddenResponse(hidden=False)
