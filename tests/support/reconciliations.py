"""Whole runs of the reconciliation, and what they find."""

from __future__ import annotations

from bench.round_trips import count_round_trips
from plaza.operate.reconciliation import RunReport, orchestrator
from tests.support.consumers import statements
from tests.support.plaza import World


def run(world: World) -> RunReport:
    """Execute a whole run, repairs included, and return its report."""
    run_id = orchestrator.start()
    world.queues.drain()
    return orchestrator.read_report(run_id)


def findings_of(report: RunReport) -> set[tuple[str, str, str]]:
    """Return (reason, what, target) of each finding."""
    findings = (example.finding for example in report.examples)
    return {(f.reason, f.subject.what, f.subject.reference) for f in findings}


def count_cost(world: World) -> tuple[int, int]:
    """Execute a run that finds nothing; return its round trips to Redis, and its statements."""
    before = statements()
    with count_round_trips() as trips:
        assert run(world).differing == 0
    return trips.sent, statements() - before
