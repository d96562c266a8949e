"""The steps of a run. Each step compares a bounded range and returns its part's next position.

A run has these parts:

    targets:<type>               ranges of targets: counters and the rows that they count
    users                        ranges of users: the same
    redis:<node>                 keys of a node: targets and projections of counters
    filter:<kind>:<type>:<id>    actors of a target that has a Bloom filter
    recheck                      suspects of the parts above, compared a second time
    repairs                      findings, sent to the queue ``repairs``

The first four run concurrently; each of the others begins when all before it are done.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza import counters
from plaza.infra.queues.queue import QueueDown
from plaza.reactions import KINDS, Kind, Target, inspection
from plaza.reconciliation import mysql_counts, mysql_runs, redis_scan
from plaza.reconciliation.comparison import compare_subjects
from plaza.reconciliation.model import (
    CHECK_FILTER,
    CHECK_STATE,
    FILTER,
    MAX_FINDINGS_PER_MESSAGE,
    MAX_ID,
    TYPES,
    Finding,
    RepairFindings,
    RunPart,
    StepResult,
    Subject,
    Suspect,
    Tally,
    compare_counts,
)
from plaza.reconciliation.queues import REPAIRS

RECHECK = "recheck"
SEND_REPAIRS = "repairs"
_TARGETS_PER_STEP = 300
_SCANS_PER_STEP = 10
_ACTORS_PER_STEP = 5_000
ACTORS_PER_CALL = 250
_SUSPECTS_PER_STEP = 200
_FINDINGS_PER_STEP = 1_000
_MAX_DENIED = 20


def list_initial_parts() -> list[str]:
    """Return the parts that a run begins with. Raises RedisDown."""
    nodes = [f"redis:{node}" for node in redis_scan.read_nodes()]
    return [*(f"targets:{target_type}" for target_type in TYPES), "users", *nodes]


def execute(part: RunPart) -> StepResult:
    """Execute the next step of ``part``. It changes no data; it may send messages.

    Raises MysqlDown, RedisDown, QueueDown.
    """
    name, _, of = part.name.partition(":")
    match name:
        case "targets":
            return _compare_targets(of, int(part.position or 0))
        case "users":
            return _compare_users(int(part.position or 0))
        case "redis":
            return _scan_node(of, int(part.position or 0))
        case "filter":
            kind, target_type, target_id = of.split(":")
            target = Target(target_type, int(target_id))
            return _check_filter(KINDS[kind], target, int(part.position or 0))
        case "recheck":
            return _recheck_suspects(part.run_id, int(part.position or 0))
        case "repairs":
            return _send_repairs(part.run_id, int(part.position or 0))
    raise LookupError(f"unknown part {part.name}")


def _compare_targets(target_type: str, after_id: int) -> StepResult:
    last_id = mysql_counts.find_target_range_end(target_type, after_id)
    counted = mysql_counts.count_targets(target_type, after_id, last_id)
    return StepResult(
        position=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(targets=counted.subjects, relations=counted.relations),
        findings=compare_counts(target_type, counted.counters, counted.rows),
    )


def _compare_users(after_id: int) -> StepResult:
    last_id = mysql_counts.find_user_range_end(after_id)
    counted = mysql_counts.count_users(after_id, last_id)
    return StepResult(
        position=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(users=counted.subjects),
        findings=compare_counts("user", counted.counters, counted.rows),
    )


def _scan_node(node: str, cursor: int) -> StepResult:
    """Compare a page of a node's keys. What differs becomes a suspect, not yet a finding."""
    subjects: set[Subject] = set()
    for _ in range(_SCANS_PER_STEP):
        cursor, keys = redis_scan.scan(node, cursor)
        subjects |= {subject for subject in map(_parse_subject, keys) if subject is not None}
        if not cursor or len(subjects) >= _TARGETS_PER_STEP:
            break
    result = StepResult(str(cursor), is_last=not cursor)
    for subject, (comparison, observed, has_filter) in compare_subjects(sorted(subjects)).items():
        result.tally.cached += 1
        if comparison.reasons:
            result.suspects.append(Suspect(CHECK_STATE, subject, observed))
        if has_filter:
            result.parts.append(f"filter:{subject.what}:{subject.target}")
    # After a failover, the keys are on a node with another name.
    result.parts += [f"redis:{name}" for name in redis_scan.read_nodes() if name != node]
    return result


def _parse_subject(key: str) -> Subject | None:
    """Return the subject whose state ``key`` contains, None if it can't be compared with MySQL."""
    if target := inspection.target_of_key(key):
        return Subject(target[0].name, *target[1])
    if owner := counters.owner_of_key(key):
        return Subject("user" if owner[0] == "user" else "comments", *owner)
    return None


def _check_filter(kind: Kind, target: Target, after_id: int) -> StepResult:
    """Check that the filter has each active actor of the next page."""
    actor_ids = inspection.read_actors(kind, target, after_id, _ACTORS_PER_STEP)
    denied = [
        actor_id
        for _, of_call in inspection.find_denied(
            [
                (kind, target, actor_ids[start : start + ACTORS_PER_CALL])
                for start in range(0, len(actor_ids), ACTORS_PER_CALL)
            ]
        )
        for actor_id in of_call
    ]
    result = StepResult(
        str(actor_ids[-1] if actor_ids else after_id),
        # A repair rebuilds the whole filter, so these are enough.
        is_last=len(actor_ids) < _ACTORS_PER_STEP or len(denied) >= _MAX_DENIED,
    )
    if denied:
        observed = ",".join(map(str, denied[:_MAX_DENIED]))
        result.suspects.append(Suspect(CHECK_FILTER, Subject(kind.name, *target), observed))
    return result


def _recheck_suspects(run_id: int, after_id: int) -> StepResult:
    """Compare a page of suspects again; what differs again, and is not in transit, is a finding."""
    page = mysql_runs.read_suspects(run_id, after_id, _SUSPECTS_PER_STEP)
    result = StepResult(
        str(page[-1][0] if page else after_id), is_last=len(page) < _SUSPECTS_PER_STEP
    )
    suspects = [suspect for _, suspect in page]
    first = {s.subject: s.observed for s in suspects if s.check == CHECK_STATE}
    for subject, (comparison, observed, _) in compare_subjects(
        sorted(first), name_actors=True
    ).items():
        if comparison.reasons and not comparison.is_conclusive and observed != first[subject]:
            result.tally.skipped += 1
        else:
            result.findings += [
                Finding(reason, subject, details) for reason, details in comparison.reasons.items()
            ]
    result.findings += _recheck_filters([s for s in suspects if s.check == CHECK_FILTER])
    return result


def _recheck_filters(suspects: Sequence[Suspect]) -> list[Finding]:
    """Return the filters that still deny an actor who is active before and after the check."""
    requests = [
        (KINDS[s.subject.what], s.subject.target, [int(i) for i in s.observed.split(",")])
        for s in suspects
    ]
    of_mysql = inspection.read_counters([(kind, target) for kind, target, _ in requests])
    before = mysql_counts.read_active_versions(requests)
    denied = inspection.find_denied(requests)
    after = mysql_counts.read_active_versions(requests)
    findings = []
    versions = zip(of_mysql, denied, strict=True)
    for suspect, on, ((_, db_version), (cached_version, by_filter)), still_on in zip(
        suspects, before, versions, after, strict=True
    ):
        # The filter does not include a commit that has not reached Redis.
        if cached_version < db_version:
            continue
        wrong = [i for i in by_filter if i in on and on[i] == still_on.get(i)]
        if wrong:
            details = f"denies {', '.join(map(str, wrong[:5]))}"
            findings.append(Finding(FILTER, suspect.subject, details))
    return findings


def _send_repairs(run_id: int, after_id: int) -> StepResult:
    ids = mysql_runs.read_unrepaired(run_id, after_id, _FINDINGS_PER_STEP)
    messages = [
        RepairFindings(tuple(ids[start : start + MAX_FINDINGS_PER_MESSAGE]))
        for start in range(0, len(ids), MAX_FINDINGS_PER_MESSAGE)
    ]
    if REPAIRS.send_all(messages) < len(messages):
        raise QueueDown("SQS refused some repairs")
    return StepResult(str(ids[-1] if ids else after_id), is_last=len(ids) < _FINDINGS_PER_STEP)
