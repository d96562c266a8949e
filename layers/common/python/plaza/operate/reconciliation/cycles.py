"""Rolling comparisons: in each run what changed since the one before, and a quota of all subjects.

A comparison that a context declares (``declared.rolling``) has two parts of each run:

    <name>                  its quota: continues where the last run stopped
    changed:<name>          its dirty rows: subjects that changed since the last run

The part ``log`` reads the reaction log from where the last run stopped, adds dirty rows, and
then the parts that compare them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from plaza.core.reactions import reaction_log
from plaza.infra.derived.comparisons import (
    CYCLE_S,
    MIN_STEPS,
    CycleMove,
    RollingComparison,
    RunPart,
    StepResult,
)
from plaza.infra.mysql import mysql
from plaza.operate.reconciliation import mysql_cycles, mysql_runs
from plaza.operate.reconciliation.model import NewPart, compute_quota
from plaza.operate.reconciliation.mysql_cycles import LOG

LOG_PART = "log"
CHANGED = "changed:"
_EVENTS_PER_STEP = 20_000
_DIRTY_PER_STEP = 500


def plan(comparisons: Iterable[RollingComparison]) -> tuple[list[NewPart], dict[str, int]]:
    """Return the parts that a run begins with, and name -> expected subjects of each cycle.

    Two statements, and one or two for each comparison. Raises MysqlDown.
    """
    cycles, interval_s = mysql_cycles.read_cycles(), mysql_cycles.read_interval_s()
    log = cycles.get(LOG)
    parts, expected = [NewPart(LOG_PART, log.cursor if log else "")], {LOG: 0}
    for comparison in comparisons:
        cursor, compared, _, open_s, _ = cycles.get(comparison.name) or ("", 0, 0, 0, None)
        if not cursor:  # a cycle begins
            compared = open_s = 0
        left = comparison.estimate_left(int(cursor or 0))
        quota = compute_quota(compared, left, open_s, interval_s)
        parts.append(NewPart(comparison.name, cursor, quota))
        expected[comparison.name] = compared + left
    return parts, expected


def read_progress() -> dict[str, int]:
    """Return the progress of the cycles. Two statements. Raises MysqlDown.

    ``cycle_progress_pct``: of the least advanced one, 100 when none is open. ``cycle_late_h``:
    hours beyond 28 days. ``changes_age_h``: since the newest run began that has ended, so all
    earlier changes are compared; 0 before the first.
    """
    cycles = [r for name, r in mysql_cycles.read_cycles().items() if name != LOG and r.cursor]
    progress = min((r.compared / max(r.compared, r.expected, 1) for r in cycles), default=1)
    late_s = max((r.open_s - CYCLE_S for r in cycles), default=0)
    return {
        "cycle_progress_pct": int(100 * progress),
        "cycle_late_h": max(0, late_s) // 3_600,
        "changes_age_h": max(0, mysql_runs.read_age_s()) // 3_600,
    }


def advance(part: RunPart, comparison: RollingComparison) -> StepResult:
    """Compare the next range of the quota. The part ends with the quota, or with the cycle."""
    result = comparison.compare_range(int(part.cursor or 0))
    subjects = result.tally.subjects
    ends_cycle = result.is_last
    if part.quota is not None:
        has_quota = part.subjects + subjects >= part.quota
        result.is_last = ends_cycle or (has_quota and part.steps + 1 >= MIN_STEPS)
    cursor = "" if ends_cycle else result.cursor
    result.cycle = CycleMove(comparison.name, cursor, subjects, ends_cycle)
    return result


def find_changes(after_seq: int, comparisons: Collection[RollingComparison]) -> StepResult:
    """Store what the next page of the log changed as dirty rows; at its end, add the parts that
    compare dirty rows.

    Waits for the log's writers. Raises MysqlDown.
    """
    head = reaction_log.read_log_head()
    reaction_log.wait_for_log_writers()
    end = _find_page_end(after_seq, head) if after_seq < head else head
    is_last = end == head
    result = StepResult(str(end), is_last, cycle=CycleMove(LOG, str(end), 0, is_last))
    if after_seq < end:
        for comparison in comparisons:
            if comparison.find_changed:
                changed = comparison.find_changed(after_seq, end)
                result.dirty += [(comparison.name, subject_id) for subject_id in changed]
    if is_last:
        result.parts = [CHANGED + of.name for of in comparisons if of.compare_changed]
    return result


def _find_page_end(after_seq: int, head: int) -> int:
    return mysql.run_in_transaction(
        lambda cursor: reaction_log.find_log_page_end(cursor, after_seq, head, _EVENTS_PER_STEP)
    )


def compare_dirty(after_id: int, comparison: RollingComparison) -> StepResult:
    """Compare the next dirty subjects. Raises MysqlDown, RedisDown."""
    ids = mysql_cycles.read_dirty(comparison.name, after_id, _DIRTY_PER_STEP)
    if not ids or not comparison.compare_changed:
        return StepResult(str(after_id), is_last=True)
    result = comparison.compare_changed(ids)
    result.is_last = len(ids) < _DIRTY_PER_STEP and int(result.cursor) == ids[-1]
    result.cleaned = comparison.name
    return result
