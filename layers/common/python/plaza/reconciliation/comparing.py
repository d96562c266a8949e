"""The steps of a run: each compares a bounded part, and says how far it has got.

A run has these parts, each with a cursor:

    targets:<type>               ranges of targets: their counters, and the rows they count
    users                        ranges of users, likewise
    redis:<node>                 all keys of a node: what it holds of targets and counters
    filter:<kind>:<type>:<id>    the actors of a target that has a Bloom filter
    again                        what differed in Redis, or was on its way, once more
    repairs                      what was found, to be sent to who repairs it

The first four go on side by side; the others begin when those before them are through.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza import counters
from plaza.infra.queues import QueueDown
from plaza.reactions import KINDS, Kind, Target, inspecting
from plaza.reconciliation import mysql_counts, mysql_runs, redis_walk
from plaza.reconciliation.looking import look_at
from plaza.reconciliation.queues import REPAIRS
from plaza.reconciliation.reconciliation import (
    BLOOM,
    FILTER,
    HELD,
    MOST_FINDINGS_PER_MESSAGE,
    MOST_ID,
    TYPES,
    Done,
    Finding,
    Part,
    RepairsAsked,
    Subject,
    Suspect,
    Tally,
    compare_counts,
)

AGAIN = "again"
SENDING = "repairs"
_TARGETS_PER_STEP = 300
_SCANS_PER_STEP = 10
_ACTORS_PER_STEP = 5_000
ACTORS_PER_CALL = 250
_SUSPECTS_PER_STEP = 200
_FINDINGS_PER_STEP = 1_000
_MOST_DENIED = 20


def first_parts() -> list[str]:
    """The parts that a run begins with. Raises RedisDown."""
    nodes = [f"redis:{node}" for node in redis_walk.read_nodes()]
    return [*(f"targets:{target_type}" for target_type in TYPES), "users", *nodes]


def take(part: Part) -> Done:
    """Do the next step of ``part``. Nothing is changed by it but messages sent.

    Raises MysqlDown, RedisDown, QueueDown.
    """
    name, _, of = part.name.partition(":")
    match name:
        case "targets":
            return _compare_targets(of, int(part.reached or 0))
        case "users":
            return _compare_users(int(part.reached or 0))
        case "redis":
            return _walk(of, int(part.reached or 0))
        case "filter":
            kind, target_type, target_id = of.split(":")
            target = Target(target_type, int(target_id))
            return _ask_filter(KINDS[kind], target, int(part.reached or 0))
        case "again":
            return _look_again(part.run_id, int(part.reached or 0))
        case "repairs":
            return _send_repairs(part.run_id, int(part.reached or 0))
    raise LookupError(f"no run has a part {part.name}")


def _compare_targets(target_type: str, after_id: int) -> Done:
    upto_id = mysql_counts.find_targets(target_type, after_id)
    counted = mysql_counts.count_targets(target_type, after_id, upto_id)
    return Done(
        reached=str(upto_id),
        is_last=upto_id == MOST_ID,
        tally=Tally(targets=counted.subjects, relations=counted.relations),
        findings=compare_counts(target_type, counted.counters, counted.rows),
    )


def _compare_users(after_id: int) -> Done:
    upto_id = mysql_counts.find_users(after_id)
    counted = mysql_counts.count_users(after_id, upto_id)
    return Done(
        reached=str(upto_id),
        is_last=upto_id == MOST_ID,
        tally=Tally(users=counted.subjects),
        findings=compare_counts("user", counted.counters, counted.rows),
    )


def _walk(node: str, cursor: int) -> Done:
    """Look at what some keys of a node hold. What doesn't agree is suspected, no more."""
    subjects: set[Subject] = set()
    for _ in range(_SCANS_PER_STEP):
        cursor, keys = redis_walk.scan(node, cursor)
        subjects |= {subject for subject in map(_subject_of, keys) if subject is not None}
        if not cursor or len(subjects) >= _TARGETS_PER_STEP:
            break
    done = Done(str(cursor), is_last=not cursor)
    for subject, (look, seen, has_filter) in look_at(sorted(subjects)).items():
        done.tally.hot += 1
        if look.reasons:
            done.suspects.append(Suspect(HELD, subject, seen))
        if has_filter:
            done.parts.append(f"filter:{subject.what}:{subject.target}")
    # A replica that took over has the keys under another name.
    done.parts += [f"redis:{name}" for name in redis_walk.read_nodes() if name != node]
    return done


def _subject_of(key: str) -> Subject | None:
    """What stands under a key, if it can be compared with MySQL."""
    if found := inspecting.target_of_key(key):
        return Subject(found[0].name, *found[1])
    if owner := counters.owner_of_key(key):
        return Subject("user" if owner[0] == "user" else "comments", *owner)
    return None


def _ask_filter(kind: Kind, target: Target, after_id: int) -> Done:
    """Nobody who is on may be denied by the filter. One page of them."""
    actor_ids = inspecting.read_actors(kind, target, after_id, _ACTORS_PER_STEP)
    denied = [
        actor_id
        for _, of_call in inspecting.find_denied(
            [
                (kind, target, actor_ids[start : start + ACTORS_PER_CALL])
                for start in range(0, len(actor_ids), ACTORS_PER_CALL)
            ]
        )
        for actor_id in of_call
    ]
    done = Done(
        str(actor_ids[-1] if actor_ids else after_id),
        # So many are enough: all of the filter is made again.
        is_last=len(actor_ids) < _ACTORS_PER_STEP or len(denied) >= _MOST_DENIED,
    )
    if denied:
        seen = ",".join(map(str, denied[:_MOST_DENIED]))
        done.suspects.append(Suspect(BLOOM, Subject(kind.name, *target), seen))
    return done


def _look_again(run_id: int, after_id: int) -> Done:
    """What doesn't agree now either differs, unless it may be on its way still."""
    page = mysql_runs.read_suspects(run_id, after_id, _SUSPECTS_PER_STEP)
    done = Done(str(page[-1][0] if page else after_id), is_last=len(page) < _SUSPECTS_PER_STEP)
    suspects = [suspect for _, suspect in page]
    held = {s.subject: s.seen for s in suspects if s.look == HELD}
    for subject, (look, seen, _) in look_at(sorted(held), by_name=True).items():
        if look.reasons and not look.is_certain and seen != held[subject]:
            done.tally.moving += 1
        else:
            done.findings += [Finding(why, subject, said) for why, said in look.reasons.items()]
    done.findings += _find_denied([s for s in suspects if s.look == BLOOM])
    return done


def _find_denied(suspects: Sequence[Suspect]) -> list[Finding]:
    """Those whose filter still denies somebody who is on before and after it is asked."""
    wanted = [
        (KINDS[s.subject.what], s.subject.target, [int(i) for i in s.seen.split(",")])
        for s in suspects
    ]
    counters = inspecting.read_counters([(kind, target) for kind, target, _ in wanted])
    before = mysql_counts.read_on(wanted)
    denied = inspecting.find_denied(wanted)
    after = mysql_counts.read_on(wanted)
    findings = []
    of_redis = zip(counters, denied, strict=True)
    for suspect, on, ((_, n), (s, by_filter)), still_on in zip(
        suspects, before, of_redis, after, strict=True
    ):
        # Of a commit that has not reached Redis, the filter knows nothing yet.
        wronged = [i for i in by_filter if s >= n and i in on and on[i] == still_on.get(i)]
        if wronged:
            said = f"says no to {', '.join(map(str, wronged[:5]))}"
            findings.append(Finding(FILTER, suspect.subject, said))
    return findings


def _send_repairs(run_id: int, after_id: int) -> Done:
    ids = mysql_runs.read_unrepaired(run_id, after_id, _FINDINGS_PER_STEP)
    messages = [
        RepairsAsked(tuple(ids[start : start + MOST_FINDINGS_PER_MESSAGE]))
        for start in range(0, len(ids), MOST_FINDINGS_PER_MESSAGE)
    ]
    if REPAIRS.send_all(messages) < len(messages):
        raise QueueDown("SQS did not take all repairs")
    return Done(str(ids[-1] if ids else after_id), is_last=len(ids) < _FINDINGS_PER_STEP)
