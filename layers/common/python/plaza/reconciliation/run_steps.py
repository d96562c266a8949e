"""The steps of a run: each compares a bounded part, and says how far it has got.

A run has these parts, each with a cursor:

    targets:<type>               ranges of targets: their counters, and the rows they count
    users                        ranges of users, likewise
    redis:<node>                 all keys of a node: what it holds of targets and counters
    filter:<kind>:<type>:<id>    the actors of a target that has a Bloom filter
    recheck                      what differed in Redis, or was on its way, once more
    repairs                      what was found, to be sent to who repairs it

The first four go on side by side; the others begin when those before them are through.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza import counters
from plaza.infra.queues import QueueDown
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
    """The parts that a run begins with. Raises RedisDown."""
    nodes = [f"redis:{node}" for node in redis_scan.read_nodes()]
    return [*(f"targets:{target_type}" for target_type in TYPES), "users", *nodes]


def execute(part: RunPart) -> StepResult:
    """Do the next step of ``part``. Nothing is changed by it but messages sent.

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
    raise LookupError(f"no run has a part {part.name}")


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
    """Look at what some keys of a node hold. What doesn't agree is suspected, no more."""
    subjects: set[Subject] = set()
    for _ in range(_SCANS_PER_STEP):
        cursor, keys = redis_scan.scan(node, cursor)
        subjects |= {subject for subject in map(_parse_subject, keys) if subject is not None}
        if not cursor or len(subjects) >= _TARGETS_PER_STEP:
            break
    done = StepResult(str(cursor), is_last=not cursor)
    for subject, (comparison, observed, has_filter) in compare_subjects(sorted(subjects)).items():
        done.tally.cached += 1
        if comparison.reasons:
            done.suspects.append(Suspect(CHECK_STATE, subject, observed))
        if has_filter:
            done.parts.append(f"filter:{subject.what}:{subject.target}")
    # A replica that took over has the keys under another name.
    done.parts += [f"redis:{name}" for name in redis_scan.read_nodes() if name != node]
    return done


def _parse_subject(key: str) -> Subject | None:
    """What stands under a key, if it can be compared with MySQL."""
    if found := inspection.target_of_key(key):
        return Subject(found[0].name, *found[1])
    if owner := counters.owner_of_key(key):
        return Subject("user" if owner[0] == "user" else "comments", *owner)
    return None


def _check_filter(kind: Kind, target: Target, after_id: int) -> StepResult:
    """Nobody who is on may be denied by the filter. One page of them."""
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
    done = StepResult(
        str(actor_ids[-1] if actor_ids else after_id),
        # So many are enough: all of the filter is made again.
        is_last=len(actor_ids) < _ACTORS_PER_STEP or len(denied) >= _MAX_DENIED,
    )
    if denied:
        observed = ",".join(map(str, denied[:_MAX_DENIED]))
        done.suspects.append(Suspect(CHECK_FILTER, Subject(kind.name, *target), observed))
    return done


def _recheck_suspects(run_id: int, after_id: int) -> StepResult:
    """What doesn't agree now either differs, unless it may be on its way still."""
    page = mysql_runs.read_suspects(run_id, after_id, _SUSPECTS_PER_STEP)
    done = StepResult(
        str(page[-1][0] if page else after_id), is_last=len(page) < _SUSPECTS_PER_STEP
    )
    suspects = [suspect for _, suspect in page]
    held = {s.subject: s.observed for s in suspects if s.check == CHECK_STATE}
    for subject, (comparison, observed, _) in compare_subjects(
        sorted(held), name_actors=True
    ).items():
        if comparison.reasons and not comparison.is_conclusive and observed != held[subject]:
            done.tally.skipped += 1
        else:
            done.findings += [
                Finding(why, subject, details) for why, details in comparison.reasons.items()
            ]
    done.findings += _recheck_filters([s for s in suspects if s.check == CHECK_FILTER])
    return done


def _recheck_filters(suspects: Sequence[Suspect]) -> list[Finding]:
    """Those whose filter still denies somebody who is on before and after it is asked."""
    wanted = [
        (KINDS[s.subject.what], s.subject.target, [int(i) for i in s.observed.split(",")])
        for s in suspects
    ]
    counters = inspection.read_counters([(kind, target) for kind, target, _ in wanted])
    before = mysql_counts.read_active_versions(wanted)
    denied = inspection.find_denied(wanted)
    after = mysql_counts.read_active_versions(wanted)
    findings = []
    of_redis = zip(counters, denied, strict=True)
    for suspect, on, ((_, n), (s, by_filter)), still_on in zip(
        suspects, before, of_redis, after, strict=True
    ):
        # Of a commit that has not reached Redis, the filter knows nothing yet.
        wronged = [i for i in by_filter if s >= n and i in on and on[i] == still_on.get(i)]
        if wronged:
            details = f"says no to {', '.join(map(str, wronged[:5]))}"
            findings.append(Finding(FILTER, suspect.subject, details))
    return findings


def _send_repairs(run_id: int, after_id: int) -> StepResult:
    ids = mysql_runs.read_unrepaired(run_id, after_id, _FINDINGS_PER_STEP)
    messages = [
        RepairFindings(tuple(ids[start : start + MAX_FINDINGS_PER_MESSAGE]))
        for start in range(0, len(ids), MAX_FINDINGS_PER_MESSAGE)
    ]
    if REPAIRS.send_all(messages) < len(messages):
        raise QueueDown("SQS did not take all repairs")
    return StepResult(str(ids[-1] if ids else after_id), is_last=len(ids) < _FINDINGS_PER_STEP)
