"""Reconciliations and the live audit: comparisons of Redis, counters and rows. For operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.targets import target_ids
from plaza.infra.http.cursors import BadCursor, pack_cursor, unpack_cursor
from plaza.infra.http.resolver import PlazaResolver
from plaza.infra.http.routes import OPERATOR, Responses
from plaza.infra.http.schemas import Cursor, Limit, Page
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import logger, metrics
from plaza.operate.reconciliation import live_audit, orchestrator
from plaza.operate.reconciliation.model import RunReport
from plaza.operate.reconciliation.schemas import (
    AuditResponse,
    ReconciliationResponse,
    TargetTexts,
    parse_targets,
)
from plaza.people.auth.caller_identity import identify

app = PlazaResolver(identify, tag="operations")


@app.get("/ops/audit", security=OPERATOR, responses=Responses("The audit."))
def get_audit(target: TargetTexts = None, limit: Limit = 20) -> AuditResponse:
    """Get an audit of the most active targets.

    Compares totals in Redis, counters and rows at this moment, of the targets with the most of the
    latest 1,000 reactions, or of each `target`. For operators.
    """
    if target is None:
        audits = live_audit.audit_active(limit, charge=app.charge)
    else:
        audits = live_audit.audit_targets(parse_targets(target), app.charge)
    ids = target_ids.render_ids(audit.target for audit in audits)
    return AuditResponse.of(audits, ids, clock.now_us())


@app.get(
    "/ops/reconciliations", security=OPERATOR, responses=Responses("A page of reconciliations.")
)
def list_reconciliations(limit: Limit = 10, cursor: Cursor = None) -> Page[ReconciliationResponse]:
    """List reconciliations.

    Returns what was compared, the differences and their repairs, the newest reconciliation first.
    For operators.
    """
    runs = orchestrator.read_reports(_parse_cursor(cursor), limit + 1)
    return Page(
        items=_describe(runs[:limit]),
        next=pack_cursor(runs[limit - 1].run_id) if len(runs) > limit else None,
    )


@app.post(
    "/ops/reconciliations",
    security=OPERATOR,
    responses=Responses({202: "The reconciliation, which is running."}, example=1),
)
def start_reconciliation() -> tuple[ReconciliationResponse, int]:
    """Start a reconciliation.

    Compares all targets and users in the background. While one is running, the request returns it
    and starts no other. For operators.
    """
    return _describe([orchestrator.read_report(orchestrator.start())])[0], 202


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about reconciliation."""
    return app.resolve(event, context)


def _describe(runs: Sequence[RunReport]) -> list[ReconciliationResponse]:
    subjects = (example.finding.subject for run in runs for example in run.examples)
    ids = target_ids.render_ids(subject[1:] for subject in subjects)
    return [ReconciliationResponse.of(run, ids) for run in runs]


def _parse_cursor(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    [run_id] = unpack_cursor(cursor, (int,))
    if run_id <= 0:
        raise BadCursor
    return int(run_id)
