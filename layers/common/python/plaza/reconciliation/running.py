"""Runs: begun or gone on with, taken further step by step, and ended."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.clock import Deadline
from plaza.infra.observability import record
from plaza.infra.queues import QueueDown
from plaza.reconciliation import comparing, mysql_runs
from plaza.reconciliation.comparing import AGAIN, SENDING
from plaza.reconciliation.queues import COMPARISONS
from plaza.reconciliation.reconciliation import MOST_ID, Part, PartAsked, Report

__all__ = [
    "AGAIN_AFTER_S",
    "COMPARISONS",
    "EXAMPLES",
    "MOST_S",
    "read_report",
    "read_reports",
    "start",
    "take_parts",
]

MOST_S = 15.0
AGAIN_AFTER_S = 20  # longer than what was written is announced before (plaza.targets.announce)
EXAMPLES = 20


def start() -> int:
    """Begin a run, or go on with the one that has not ended; its id.

    Parts that somebody else works on are sent too: of two who do the same step, one has done it.
    Raises MysqlDown, RedisDown, QueueDown.
    """
    run_id, began = mysql_runs.begin(comparing.first_parts())
    record("reconciliation_started", {"runs_resumed": int(not began)}, run=run_id)
    _go_on(run_id, mysql_runs.read_parts(run_id))
    return run_id


@COMPARISONS.consumer
def take_parts(asked: Sequence[PartAsked]) -> None:
    """Take each part further for about 15 s, then let the queue bring it back.

    Safe to repeat, and for many at once. Raises MysqlDown, RedisDown, QueueDown.
    """
    for run_id, name in dict.fromkeys(asked):
        _take(run_id, name)


def read_reports(before_id: int | None = None, limit: int = 1) -> list[Report]:
    """The newest runs, the newest first; those before ``before_id``. Raises MysqlDown."""
    return mysql_runs.read_reports(before_id or MOST_ID, limit, EXAMPLES)


def read_report(run_id: int) -> Report:
    """A run. Raises LookupError, MysqlDown."""
    for report in mysql_runs.read_reports(run_id + 1, 1, EXAMPLES):
        if report.run_id == run_id:
            return report
    raise LookupError(f"there is no run {run_id}")


def _take(run_id: int, name: str) -> None:
    deadline, steps = Deadline.in_s(MOST_S), 0
    while part := mysql_runs.read_part(run_id, name):
        if steps and deadline.has_passed:
            COMPARISONS.send(PartAsked(run_id, name))
            break
        done = comparing.take(part)
        if not mysql_runs.keep_step(part, done):
            record("comparison_lost", run=run_id, part=name)
            return  # somebody else is at it, and goes on
        steps += 1
    else:
        _follow(run_id, name)
    record("comparison_stepped", run=run_id, part=name, steps=steps)


def _follow(run_id: int, name: str) -> None:
    """A part is through, perhaps for long: see to what comes after it."""
    if name.startswith("redis:"):
        parts = mysql_runs.read_parts(run_id)
        _ask([p for p in parts if not p.is_done and not p.reached and _is_added(p)])
    if not mysql_runs.has_unfinished(run_id, (AGAIN, SENDING)):
        _go_on(run_id, mysql_runs.read_parts(run_id))


def _go_on(run_id: int, parts: Sequence[Part]) -> None:
    """Send what is to be done now. The parts of a run that has ended are none."""
    last = {part.name: part for part in parts if part.name in (AGAIN, SENDING)}
    unfinished = [part for part in parts if not part.is_done and part.name not in last]
    if unfinished:
        _ask(unfinished)
    elif parts:
        for name in (AGAIN, SENDING):
            if name not in last:
                mysql_runs.add_part(run_id, name)
            if name not in last or not last[name].is_done:
                wait = name == AGAIN and mysql_runs.has_suspects(run_id)
                COMPARISONS.send(PartAsked(run_id, name), AGAIN_AFTER_S if wait else 0)
                return
        _end(run_id)


def _is_added(part: Part) -> bool:
    """It was not there when the run began, or may not have been."""
    return part.name.startswith(("filter:", "redis:"))


def _ask(parts: Sequence[Part]) -> None:
    if COMPARISONS.send_all(PartAsked(part.run_id, part.name) for part in parts) < len(parts):
        raise QueueDown("SQS did not take all parts")


def _end(run_id: int) -> None:
    if not mysql_runs.end(run_id):
        return
    report = read_report(run_id)
    record(
        "reconciled",
        {
            "targets_compared": report.tally.targets,
            "relations_compared": report.tally.relations,
            "users_compared": report.tally.users,
            "hot_compared": report.tally.hot,
            "drift_found": report.differing,
            "drift_passed_over": report.tally.moving,
        },
        run=run_id,
        why=report.why,
        examples=[
            f"{e.finding.reason} {e.finding.subject.what} {e.finding.subject.target}:"
            f" {e.finding.said}"
            for e in report.examples[:5]
        ],
    )
