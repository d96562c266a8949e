"""Waits: until answers are normal, and until nothing is on its way; then the audit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace

from cli.paths import CommandError
from local.audit.audit import run_audit
from local.audit.backlog import RECOVERING, read_backlog
from tests.chaos.harness import Harness, wait_for
from tests.chaos.traffic import Operation, Workload

NORMAL_IN_A_ROW = 4
QUIET_S = 240.0
_SCHEDULE_INTERVAL_S = 10.0
_SWEEP_PAUSE_S = 1.5  # longer than a process keeps the name of a mastership; a minute in production


def find_audit_problems(harness: Harness, ignored: str | None = None) -> list[str]:
    """Return what the audit finds as one problem; none if it is clean.

    ``ignored``: beginning of the subjects of differences that do not count.
    """
    report = run_audit(harness.stack)
    if ignored is not None:
        left = [d for d in report.differences if not d.subject.startswith(ignored)]
        report = replace(report, differences=left)
    if report.clean:
        return []
    differing = "; ".join(map(str, report.differences[:5]))
    return [
        f"the audit is not clean: drift {report.drift}, others {report.others},"
        f" pending {report.pending}, queued {sum(report.queued.values())},"
        f" dead {sum(report.dead.values())}; {read_backlog(harness.stack)}: {differing}"
    ]


def wait_until_normal(
    workload: Workload, operations: Sequence[Operation], since_s: float, problems: list[str]
) -> None:
    """Wait until the last answers to requests after ``since_s`` are normal."""
    deadline_s = time.monotonic() + 120
    while not all(workload.is_normal_since(item, since_s, NORMAL_IN_A_ROW) for item in operations):
        if time.monotonic() > deadline_s or workload.errors:
            problems.append("the answers did not become normal again")
            return
        time.sleep(0.05)


def wait_until_quiet(
    harness: Harness, operations: Sequence[Operation], since_s: float, problems: list[str]
) -> float:
    """Wait until queues are empty and promises decided. Returns the seconds since ``since_s``.

    Schedules of every minute run every ten seconds.
    """
    stack, help_at_s = harness.stack, time.monotonic() + _SCHEDULE_INTERVAL_S
    while True:
        undecided = sum(item.count_undecided(harness.rows) for item in operations)
        backlog = read_backlog(stack)
        if not undecided and not any(backlog):
            return time.monotonic() - since_s
        if time.monotonic() - since_s > QUIET_S:
            problems.append(
                f"the queues did not become empty: {backlog}, {undecided} orders undecided"
            )
            return QUIET_S
        if time.monotonic() > help_at_s:
            for function in RECOVERING:
                with contextlib.suppress(CommandError):
                    stack.invoke(function, {})
            help_at_s = time.monotonic() + _SCHEDULE_INTERVAL_S
        time.sleep(0.25)


def sweep_twice(harness: Harness, problems: list[str]) -> None:
    """Run the sweeper and the recovery of orders twice, and wait each time until nothing is in
    transit."""
    for _ in range(2):
        time.sleep(_SWEEP_PAUSE_S)
        wait_for("the schedules run", lambda: _run_schedules(harness))
        wait_until_quiet(harness, (), time.monotonic(), problems)


def _run_schedules(harness: Harness) -> bool:
    """Run what recovers from a failover within a minute."""
    with contextlib.suppress(CommandError):
        for function in RECOVERING:
            harness.stack.invoke(function, {})
        return True
    return False
