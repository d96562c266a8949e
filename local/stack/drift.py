"""``drift``: a run of reconciliation on the stack, followed to its end, as a report."""

import argparse
import json
import os
import time
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from local.output import console, new_summary
from local.paths import LocalError
from local.stack.stack import Stack

if TYPE_CHECKING:
    from plaza.reconciliation import RunReport

TIMEOUT_S = 900.0
REPAIR_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.25


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Start a run, or follow the one there is, and print it; 1 if it left something different."""
    os.environ.update(stack.environment())  # before plaza reads its settings, once
    report = wait_for_run(stack.invoke("Reconcile", {})["run"])
    if args.json:
        print(json.dumps(to_json(report)))
    else:
        console.print(render(report))
    return 0 if report.is_resolved else 1


def wait_for_run(run_id: int) -> "RunReport":
    """The run once it has ended and what it found is repaired, or won't be. Raises LocalError."""
    from plaza.infra.mysql import MysqlDown
    from plaza.reconciliation import orchestrator

    end_s, told_s = time.monotonic() + TIMEOUT_S, 0.0
    while True:
        try:
            report = orchestrator.read_report(run_id)
        except MysqlDown as error:
            raise LocalError(f"the stack's MySQL does not answer: {error}") from None
        now_s = time.monotonic()
        if report.ended_at is not None and not told_s:
            told_s = now_s
        if report.is_resolved or (told_s and now_s - told_s > REPAIR_TIMEOUT_S):
            return report
        if now_s > end_s:
            raise LocalError(f"run {run_id} did not end in {TIMEOUT_S:.0f} s: see `local logs`")
        time.sleep(_POLL_INTERVAL_S)


def to_json(report: "RunReport") -> dict[str, Any]:
    """For a machine: as GET /ops/drift tells it, and whether all agree by now."""
    from plaza.reconciliation.schemas import ReconciliationResponse

    return {
        "settled": report.is_resolved,
        **ReconciliationResponse.of(report).model_dump(mode="json"),
    }


def render(report: "RunReport") -> RenderableType:
    """The report as people read it."""
    tally = report.tally
    took_s = (report.ended_at - report.started_at).total_seconds() if report.ended_at else 0.0
    facts = new_summary(
        ("run", f"{report.run_id}, {took_s:.1f} s", report.ended_at is not None),
        ("relations compared", f"{tally.relations:,}", True),
        ("targets", f"{tally.targets:,}", True),
        ("users", f"{tally.users:,}", True),
        ("held by Redis", f"{tally.cached:,}", True),
        ("passed over", f"{tally.skipped:,} moving", True),
        ("differing", f"{report.differing:,}{_reasons(report)}", not report.differing),
        ("repaired", f"{report.repaired:,}", report.is_resolved),
    )
    parts: list[RenderableType] = [facts, ""]
    for found_at in report.examples:
        reason, subject, said = found_at.finding
        state = "repaired" if found_at.repaired_at else "not repaired"
        about = f"  {reason}: {subject.what} {subject.target}: {said} ({state})"
        parts.append(Text(about))
    if report.differing > len(report.examples):
        parts.append(f"  and {report.differing - len(report.examples):,} more")
    if not report.is_resolved:
        parts.append("[red]it differs still[/red]")
    elif report.differing:
        parts.append("[yellow]it differed, and is repaired[/yellow]")
    else:
        parts.append("[green]all agree[/green]")
    return Group(*parts)


def _reasons(report: "RunReport") -> str:
    said = ", ".join(
        f"{reason} {count:,}" for reason, count in sorted(report.reason_counts.items())
    )
    return f": {said}" if said else ""
