"""Failovers there and back, without a restart of either server.

Of most targets one request is made, and no later one repairs what it left. In a *quiet* one all
traffic stops before clients reach the new master, so only consumers and the sweeper use it; it
begins again when everything was compared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from tests.chaos.expectations import SWAPS
from tests.chaos.faults import Fault, inject
from tests.chaos.harness import Harness
from tests.chaos.traffic import Feeds, Operation, Orders, Reads, Sample, Workload
from tests.chaos.verdict import Row, judge
from tests.chaos.waits import (
    find_audit_problems,
    sweep_twice,
    wait_until_normal,
    wait_until_quiet,
)

_QUIET = "-quiet"
NAMES = tuple(f"{swap}{traffic}" for swap in SWAPS for traffic in ("", _QUIET))
_READS = 6  # of each operation that reads, when it is quiet


def play(harness: Harness, name: str) -> Row:
    """Run two failovers under load, and judge the answers, MySQL and the API afterwards."""
    problems: list[str] = []
    harness.faults.replicate()  # before anything is loaded
    sweep_twice(harness, problems)  # each minute has a check of Redis; a new stack has had none
    operations = harness.open_swaps()
    is_quiet, fault_name = name.endswith(_QUIET), name.removesuffix(_QUIET)
    fault = harness.faults.find(fault_name)
    with Workload(operations) as first:
        wait_until_normal(first, operations, time.monotonic(), problems)
        if is_quiet:
            began_s = _begin_outage(fault)
        else:
            began_s, ended_s, undone_s = inject(fault)
            wait_until_normal(first, operations, undone_s, problems)
    workloads = [first]
    if is_quiet:
        ended_s = time.monotonic()  # the last requests are answered
        _return_quietly(harness, fault, problems)
        problems += _find_wrong_when_quiet(harness, operations)
        with Workload(operations) as second:
            undone_s = time.monotonic()
            wait_until_normal(second, operations, undone_s, problems)
        workloads.append(second)
    for operation in operations:
        if isinstance(operation, Orders):
            problems += operation.click_again()
    quiet_s = wait_until_quiet(harness, operations, undone_s, problems)
    sweep_twice(harness, problems)
    problems += _find_wrong_when_quiet(harness, operations)
    samples: dict[str, list[Sample]] = {
        item.name: [sample for workload in workloads for sample in workload.samples[item.name]]
        for item in operations
    }
    problems += [error for workload in workloads for error in workload.errors]
    cells = [
        judge(
            fault_name,
            item,
            samples[item.name],
            began_s,
            ended_s,
            undone_s,
            *item.check(harness.rows),
        )
        for item in operations
    ]
    problems += [f"{cell.operation}: {problem}" for cell in cells for problem in cell.problems]
    return Row(name, fault.how, cells, quiet_s, os.getloadavg()[0], problems)


def _begin_outage(fault: Fault) -> float:
    """Inject what makes the master unavailable, for as long as it lasts. Returns when it began."""
    began_s = time.monotonic()
    for step in fault.steps[: fault.outage]:
        step.do()
        time.sleep(step.for_s)
    return began_s


def _return_quietly(harness: Harness, fault: Fault, problems: list[str]) -> None:
    """Let consumers and the sweeper use the new master, then the old one."""
    to_new_master, *back = fault.steps[fault.outage :]
    to_new_master.do()
    sweep_twice(harness, problems)
    for step in back:
        step.do()
    fault.undo()
    sweep_twice(harness, problems)


def _find_wrong_when_quiet(harness: Harness, operations: Sequence[Operation]) -> list[str]:
    """Return what is lost, and what the API and the audit show that MySQL does not have."""
    wrong = find_audit_problems(harness)
    for item in operations:
        if isinstance(item, Reads | Feeds):
            labels = {item.step()[1] for _ in range(_READS)}
            wrong += [f"{item.name} answers {label} when it is quiet" for label in labels - {"200"}]
        untrue = item.find_untrue(harness.rows)
        wrong += [f"{item.name}: {what} ({len(untrue)} in all)" for what in untrue[:3]]
    return wrong
