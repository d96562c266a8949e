"""``drift``: run a reconciliation and print its report."""

import argparse
import json
import time
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cli.output import console, new_summary
from cli.paths import CommandError
from ops.environment import use_environment
from plaza.core.targets import target_ids
from plaza.operate.reconciliation import RunReport, orchestrator
from plaza.operate.reconciliation.schemas import ReconciliationResponse

TIMEOUT_S = 900.0
REPAIR_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.25


def main(args: argparse.Namespace) -> int:
    """Start a run, or follow the current one, and print it. Returns 1 unless all differences are
    repaired."""
    with use_environment(args):
        report = wait_for_run(orchestrator.start())
    if args.json:
        print(json.dumps(to_json(report)))
    else:
        console.print(render(report))
    return 0 if report.is_resolved else 1


def wait_for_run(run_id: int) -> RunReport:
    """Wait until a run ended and its findings are repaired, or a timeout. Raises CommandError."""
    end_s, ended_s = time.monotonic() + TIMEOUT_S, 0.0
    while True:
        report = orchestrator.read_report(run_id)
        now_s = time.monotonic()
        if report.ended_at is not None and not ended_s:
            ended_s = now_s
        if report.is_resolved or (ended_s and now_s - ended_s > REPAIR_TIMEOUT_S):
            return report
        if now_s > end_s:
            raise CommandError(
                f"run {run_id} did not end in {TIMEOUT_S:.0f} s: see the log of CompareParts"
            )
        time.sleep(_POLL_INTERVAL_S)


def to_json(report: RunReport) -> dict[str, Any]:
    """Return the report as GET /ops/reconciliations does, plus whether all stores agree now."""
    ids = target_ids.render_ids(example.finding.subject[1:] for example in report.examples)
    return {
        "settled": report.is_resolved,
        **ReconciliationResponse.of(report, ids).model_dump(mode="json"),
    }


def render(report: RunReport) -> RenderableType:
    tally = report.tally
    took_s = (report.ended_at - report.started_at).total_seconds() if report.ended_at else 0.0
    summary = new_summary(
        ("run", f"{report.run_id}, {took_s:.1f} s", report.ended_at is not None),
        ("relations compared", f"{tally.relations:,}", True),
        ("targets", f"{tally.targets:,}", True),
        ("users", f"{tally.users:,}", True),
        ("in Redis", f"{tally.cached:,}", True),
        ("skipped", f"{tally.skipped:,} changing", True),
        ("differing", f"{report.differing:,}{_reasons(report)}", not report.differing),
        ("repaired", f"{report.repaired:,}", report.is_resolved),
    )
    parts: list[RenderableType] = [summary, ""]
    for example in report.examples:
        reason, subject, detail = example.finding
        state = "repaired" if example.repaired_at else "not repaired"
        about = f"  {reason}: {subject.what} {subject.reference}: {detail} ({state})"
        parts.append(Text(about))
    if report.differing > len(report.examples):
        parts.append(f"  and {report.differing - len(report.examples):,} more")
    if not report.is_resolved:
        parts.append("[red]differences remain[/red]")
    elif report.differing:
        parts.append("[yellow]differences were repaired[/yellow]")
    else:
        parts.append("[green]all agree[/green]")
    return Group(*parts)


def _reasons(report: RunReport) -> str:
    counts = ", ".join(
        f"{reason} {count:,}" for reason, count in sorted(report.reason_counts.items())
    )
    return f": {counts}" if counts else ""
