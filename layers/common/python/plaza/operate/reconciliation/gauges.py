"""Gauges of drift: of a live audit, and of the newest reconciliation."""

from __future__ import annotations

from plaza.infra.runtime.codec import MAX_ID
from plaza.operate.reconciliation import live_audit, mysql_runs

_AUDITED = 20
_MAX_ROWS = 100_000


def audit_active() -> dict[str, float]:
    """Return the drift of the 20 most active targets. Three round trips and three statements.
    Raises RedisDown, MysqlDown."""
    return {"drift": sum(audit.drift for audit in live_audit.audit_active(_AUDITED, _MAX_ROWS))}


def read_newest_run() -> dict[str, float]:
    """Return how many differences the newest reconciliation found, and how many of them are open;
    nothing before the first one. Three statements. Raises MysqlDown."""
    return {
        name: number
        for run in mysql_runs.read_reports(MAX_ID, 1, 1)
        for name, number in (
            ("differences_found", run.differing),
            ("differences_open", max(0, run.differing - run.repaired)),
        )
    }
