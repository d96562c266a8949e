"""Start or resume runs, process their parts, and end them."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.derived.comparisons import RunPart
from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.codec import MAX_ID
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.settings import settings
from plaza.operate.reconciliation import cycles, mysql_runs, run_steps
from plaza.operate.reconciliation.model import ComparePart, RunReport
from plaza.operate.reconciliation.queues import COMPARISONS
from plaza.operate.reconciliation.run_steps import RECHECK, SEND_REPAIRS

__all__ = [
    "COMPARISONS",
    "EXAMPLES",
    "MAX_RUN_S",
    "RECHECK_AFTER_REFRESH_S",
    "process_parts",
    "read_report",
    "read_reports",
    "start",
]

MAX_RUN_S = 15.0
RECHECK_AFTER_REFRESH_S = 5  # beyond the delay of an announced refresh (core.targets.announce)
EXAMPLES = 20


def start() -> int:
    """Begin a run, or resume the open one; return its id.

    Parts in progress are sent again, too: only one of two consumers can commit a step. Raises
    MysqlDown, RedisDown, QueueDown.
    """
    run_id, began = mysql_runs.begin(*run_steps.plan())
    progress = cycles.read_progress()
    record(
        "reconciliation_started",
        {
            "runs_resumed": int(not began),
            "cycle_late_h": progress["cycle_late_h"],
            "changes_age_h": progress["changes_age_h"],
        },
        run=run_id,
    )
    _send_pending(run_id, mysql_runs.read_parts(run_id))
    return run_id


@COMPARISONS.consumer
def process_parts(messages: Sequence[ComparePart]) -> None:
    """Process the next steps of each part for about 15 s, then send the part again.

    Safe to repeat and to run concurrently. Raises MysqlDown, RedisDown, QueueDown.
    """
    for message in dict.fromkeys(messages):
        _process(message.run_id, message.part)


def read_reports(before_id: int | None = None, limit: int = 1) -> list[RunReport]:
    """Return up to ``limit`` runs before ``before_id``, the newest first. Raises MysqlDown."""
    return mysql_runs.read_reports(before_id or MAX_ID, limit, EXAMPLES)


def read_report(run_id: int) -> RunReport:
    """Return a run. Raises LookupError, MysqlDown."""
    for report in mysql_runs.read_reports(run_id + 1, 1, EXAMPLES):
        if report.run_id == run_id:
            return report
    raise LookupError(f"run {run_id} does not exist")


def _process(run_id: int, name: str) -> None:
    deadline, steps = Deadline.in_s(MAX_RUN_S), 0
    while part := mysql_runs.read_part(run_id, name):
        if steps and deadline.has_passed:
            COMPARISONS.send(ComparePart(run_id, name))
            break
        result = run_steps.execute(part)
        if not mysql_runs.commit_step(part, result):
            record("step_discarded", run=run_id, part=name)
            return  # another consumer processes this part
        steps += 1
    else:
        _schedule_next(run_id, name)
    record("part_processed", run=run_id, part=name, steps=steps)


def _schedule_next(run_id: int, name: str) -> None:
    """Send the parts that may begin now that part ``name`` is done. Safe to repeat.

    Parts that ``name`` cannot have added are not sent: each message that is delivered twice would
    send all of them.
    """
    if added := run_steps.list_added(name):
        parts = mysql_runs.read_parts(run_id)
        _send_parts(
            [p for p in parts if not p.is_done and not p.cursor and p.name.startswith(added)]
        )
    if not mysql_runs.has_unfinished(run_id, (RECHECK, SEND_REPAIRS)):
        _send_pending(run_id, mysql_runs.read_parts(run_id))


def _send_pending(run_id: int, parts: Sequence[RunPart]) -> None:
    """Send the parts that may begin, or end the run. ``parts`` is empty if it has ended."""
    last = {part.name: part for part in parts if part.name in (RECHECK, SEND_REPAIRS)}
    unfinished = [part for part in parts if not part.is_done and part.name not in last]
    if unfinished:
        _send_parts(unfinished)
    elif parts:
        for name in (RECHECK, SEND_REPAIRS):
            if name not in last:
                mysql_runs.add_part(run_id, name)
            if name not in last or not last[name].is_done:
                wait = name == RECHECK and mysql_runs.has_suspects(run_id)
                delay_s = settings().announce_delay_s + RECHECK_AFTER_REFRESH_S
                COMPARISONS.send(ComparePart(run_id, name), delay_s if wait else 0)
                return
        _end(run_id)


def _send_parts(parts: Sequence[RunPart]) -> None:
    if COMPARISONS.send_all(ComparePart(part.run_id, part.name) for part in parts) < len(parts):
        raise QueueDown("SQS refused some parts")


def _end(run_id: int) -> None:
    if not mysql_runs.end(run_id):
        return
    report = read_report(run_id)
    record(
        "reconciliation_ended",
        {
            "targets_compared": report.tally.targets,
            "relations_compared": report.tally.relations,
            "users_compared": report.tally.users,
            "cached_compared": report.tally.cached,
            "drift_found": report.differing,
            "comparisons_skipped": report.tally.skipped,
            "changed_compared": report.tally.changed,
        },
        run=run_id,
        reason_counts=report.reason_counts,
        examples=[
            f"{e.finding.reason} {e.finding.subject.what} {e.finding.subject.reference}:"
            f" {e.finding.details}"
            for e in report.examples[:5]
        ],
    )
