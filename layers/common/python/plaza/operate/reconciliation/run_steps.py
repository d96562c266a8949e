"""The steps of a run. Each step compares a bounded range and returns its part's next cursor.

A run has these parts:

    <name>                 a quota of a rolling comparison: ``targets:post``, ``users``, ``shops``
    <name>[:<subject>]     a comparison that is a part of its own: ``hours``, ``filter:like:post:7``
    log, changed:<name>    the reaction log, and subjects that it names (``cycles``)
    redis:<node>           keys of a node: states with versions, derived lists
    recheck                suspects of the parts above, compared a second time
    repairs                findings, sent to the queue ``repairs``

All but the last two run concurrently; each of these begins when all before it are done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from plaza.infra.derived.comparisons import (
    LIST,
    Finding,
    Observation,
    RunPart,
    StepResult,
    Subject,
    Suspect,
)
from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.observability import record_unknown
from plaza.operate.reconciliation import cycles, declared, mysql_runs, redis_scan
from plaza.operate.reconciliation.cycles import CHANGED
from plaza.operate.reconciliation.model import MAX_FINDINGS_PER_MESSAGE, NewPart, RepairFindings
from plaza.operate.reconciliation.queues import REPAIRS

RECHECK = "recheck"
SEND_REPAIRS = "repairs"
_CHECK_STATE = "state"
_TARGETS_PER_STEP = 300
_SCANS_PER_STEP = 10
_SUSPECTS_PER_STEP = 200
_FINDINGS_PER_STEP = 1_000


def plan() -> tuple[list[NewPart], dict[str, int]]:
    """Return the parts that a run begins with, and name -> expected subjects of each cycle.
    Raises RedisDown, MysqlDown."""
    parts, expected = cycles.plan(declared.rolling().values())
    parts += [NewPart(name) for name, of in declared.parts().items() if of.begins]
    return [*parts, *(NewPart(f"redis:{node}") for node in redis_scan.read_nodes())], expected


def execute(part: RunPart) -> StepResult:
    """Execute the next step of ``part``. It repairs nothing; it may send messages, and fill sorted
    lists that large targets lack.

    Raises MysqlDown, RedisDown, QueueDown.
    """
    if comparison := declared.rolling().get(part.name):
        return cycles.advance(part, comparison)
    if comparison := declared.rolling().get(part.name.removeprefix(CHANGED)):
        return cycles.compare_dirty(int(part.cursor or 0), comparison)
    name, _, of = part.name.partition(":")
    if part_comparison := declared.parts().get(name):
        return part_comparison.execute(part)
    match name:
        case "log":
            return cycles.find_changes(int(part.cursor or 0), declared.rolling().values())
        case "redis":
            return _scan_node(of, int(part.cursor or 0))
        case "recheck":
            return _recheck_suspects(part.run_id, int(part.cursor or 0))
        case "repairs":
            return _send_repairs(part.run_id, int(part.cursor or 0))
    record_unknown("reconciliation_part.part", part.name)  # a deploy left out its wing
    return StepResult(part.cursor, is_last=True)


def list_added(name: str) -> tuple[str, ...]:
    """Return how names of the parts begin that part ``name`` may add to its run."""
    if comparison := declared.rolling().get(name):
        return comparison.adds
    if name == cycles.LOG_PART:
        return (CHANGED,)
    if name.startswith("redis:"):
        return ("redis:", *(prefix for state in declared.states() for prefix in state.adds))
    return ()


def _scan_node(node: str, cursor: int) -> StepResult:
    """Compare a page of a node's keys. What differs becomes a suspect, not yet a finding."""
    subjects: set[Subject] = set()
    for _ in range(_SCANS_PER_STEP):
        cursor, keys = redis_scan.scan(node, cursor)
        subjects |= {subject for subject in map(declared.find_subject, keys) if subject}
        if not cursor or len(subjects) >= _TARGETS_PER_STEP:
            break
    result = StepResult(str(cursor), is_last=not cursor)
    of_lists = [subject for subject in subjects if subject.what in declared.lists()]
    for subject, list_state in declared.compare_lists(of_lists).items():
        result.tally.cached += 1
        if list_state.differences:
            result.suspects.append(Suspect(LIST, subject, list_state.observed))
    for subject, observation in _compare_states(subjects, name_actors=False).items():
        result.tally.cached += 1
        if observation.comparison.reasons:
            result.suspects.append(Suspect(_CHECK_STATE, subject, observation.observed))
        result.parts += observation.parts
    # After a failover, the keys are on a node with another name.
    result.parts += [f"redis:{name}" for name in redis_scan.read_nodes() if name != node]
    return result


def _recheck_suspects(run_id: int, after_id: int) -> StepResult:
    """Compare a page of suspects again; what differs again, and is not in transit, is a finding."""
    page = mysql_runs.read_suspects(run_id, after_id, _SUSPECTS_PER_STEP)
    result = StepResult(
        str(page[-1][0] if page else after_id), is_last=len(page) < _SUSPECTS_PER_STEP
    )
    of_parts = {name: of.recheck for name, of in declared.parts().items() if of.recheck}
    for check, compare_again in (CHECKS | of_parts).items():
        suspects = [suspect for _, suspect in page if suspect.check == check]
        if suspects:
            findings, skipped = compare_again(suspects)
            result.findings += findings
            result.tally.skipped += skipped
    return result


def _compare_states(
    subjects: Collection[Subject], *, name_actors: bool
) -> dict[Subject, Observation]:
    observations: dict[Subject, Observation] = {}
    for state in declared.states():
        own = sorted(subject for subject in subjects if subject.what in state.subjects)
        observations |= state.compare(own, name_actors)
    return observations


def _recheck_states(suspects: Sequence[Suspect]) -> tuple[list[Finding], int]:
    first = {suspect.subject: suspect.observed for suspect in suspects}
    findings, skipped = [], 0
    for subject, (comparison, observed, _) in _compare_states(first, name_actors=True).items():
        if comparison.reasons and not comparison.is_conclusive and observed != first[subject]:
            skipped += 1
        else:
            findings += [
                Finding(reason, subject, details) for reason, details in comparison.reasons.items()
            ]
    return findings, skipped


def _recheck_lists(suspects: Sequence[Suspect]) -> tuple[list[Finding], int]:
    known = declared.lists()
    first = {s.subject: s.observed for s in suspects if s.subject.what in known}
    differing = {
        s: state for s, state in declared.compare_lists(list(first)).items() if state.differences
    }
    findings = [
        Finding(LIST, subject, state.differences)
        for subject, state in differing.items()
        if state.observed == first[subject]
    ]
    return findings, len(differing) - len(findings)


CHECKS: dict[str, Callable[[Sequence[Suspect]], tuple[list[Finding], int]]] = {
    _CHECK_STATE: _recheck_states,
    LIST: _recheck_lists,
}
"""Check of suspects -> what compares them again: (findings, number of suspects skipped)."""


def _send_repairs(run_id: int, after_id: int) -> StepResult:
    ids = mysql_runs.read_unrepaired(run_id, after_id, _FINDINGS_PER_STEP)
    messages = [
        RepairFindings(tuple(ids[start : start + MAX_FINDINGS_PER_MESSAGE]))
        for start in range(0, len(ids), MAX_FINDINGS_PER_MESSAGE)
    ]
    if REPAIRS.send_all(messages) < len(messages):
        raise QueueDown("SQS refused some repairs")
    return StepResult(str(ids[-1] if ids else after_id), is_last=len(ids) < _FINDINGS_PER_STEP)
