"""Targets, users and lists of reactions: what the reconciliation compares of them.

Parts of a run:

    targets:<type>               a quota of all targets: counters, what they count, sorted lists
    users                        a quota of all users: their counters and what these count
    filter:<kind>:<type>:<id>    actors of a target that has a Bloom filter

A scan of Redis finds targets, projections of counters, and lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plaza.core import counters
from plaza.core.reactions import inspection, mysql_counts, repair_counters, sorted_lists
from plaza.core.reactions.cached_comparison import compare_subjects
from plaza.core.reactions.drift import FILTER, OF_STATES, SORTED, TARGET_KINDS, TYPES, USER_TOTALS
from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import CachedTarget, Target
from plaza.infra.derived.comparisons import (
    COUNTER,
    CachedState,
    Counts,
    DerivedList,
    Finding,
    PartComparison,
    Repair,
    RollingComparison,
    RunPart,
    StepResult,
    Subject,
    Suspect,
    Tally,
    choose,
    compare_counts,
)
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.codec import MAX_ID

MAX_SORT_S = 30.0  # of a step; lists of more than some million rows need `sort-reactions`
_ACTORS_PER_STEP = 5_000
ACTORS_PER_CALL = 250
_MAX_DENIED = 20
_USER = "user"  # ``what`` of all totals of a user


def _compare_targets(target_type: str, after_id: int) -> StepResult:
    last_id = mysql_counts.find_target_range_end(target_type, after_id)
    counted = mysql_counts.count_targets(target_type, after_id, last_id)
    differing = inspection.find_differing(target_type, after_id, last_id)
    sorted_lists.sort_range(target_type, after_id, last_id, Deadline.in_s(MAX_SORT_S))
    return StepResult(
        cursor=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(targets=counted.subjects, relations=counted.relations),
        findings=[
            *compare_counts(target_type, counted.counters, counted.rows),
            *(Finding(SORTED, Subject(kind.name, *target), "") for kind, target in differing),
        ],
        parts=_list_filters(target_type, counted.rows),
    )


def _list_filters(target_type: str, rows: Counts) -> list[str]:
    """Return the parts for the targets with more actors than ``recent`` has and a Bloom filter."""
    pairs = [
        (KINDS[what], Target(target_type, target_id))
        for (target_id, what), count in sorted(rows.items())
        if what in KINDS and count > inspection.read_recent_cap()
    ]
    return [
        f"{FILTER}:{kind.name}:{target}"
        for (kind, target), cached in zip(pairs, inspection.inspect_all(pairs, 1), strict=True)
        if isinstance(cached, CachedTarget) and cached.bloom
    ]


def _compare_changed_targets(target_type: str, ids: Sequence[int]) -> StepResult:
    sizes = mysql_counts.read_target_sizes(target_type, ids)
    chosen, last_id = choose(ids, sizes, mysql_counts.MAX_RELATIONS)
    result = StepResult(str(last_id), is_last=False, tally=Tally(changed=len(chosen)))
    if chosen:
        counted = mysql_counts.count_given_targets(target_type, chosen)
        result.findings = compare_counts(target_type, counted.counters, counted.rows)
    return result


def _compare_users(after_id: int) -> StepResult:
    last_id = mysql_counts.find_user_range_end(after_id)
    counted = mysql_counts.count_users(after_id, last_id)
    return StepResult(
        cursor=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(users=counted.subjects),
        findings=compare_counts("user", counted.counters, counted.rows),
    )


def _compare_changed_users(ids: Sequence[int]) -> StepResult:
    sizes = mysql_counts.read_user_sizes(ids)
    chosen, last_id = choose(ids, sizes, mysql_counts.MAX_RELATIONS)
    result = StepResult(str(last_id), is_last=False, tally=Tally(changed=len(chosen)))
    if chosen:
        counted = mysql_counts.count_given_users(chosen)
        result.findings = compare_counts("user", counted.counters, counted.rows)
    return result


def _find_subject(key: str) -> Subject | None:
    """Return the target or the owner of the projection at ``key``, None for any other key."""
    if target := inspection.target_of_key(key):
        return Subject(target[0].name, *target[1])
    if owner := counters.owner_of_key(key):
        return Subject(_USER if owner[0] == _USER else counters.COMMENT, *owner)
    return None


def _check_filter(part: RunPart) -> StepResult:
    """Check that the filter has each active actor of the next page."""
    _, name, target_type, target_id = part.name.split(":")
    kind, target = KINDS[name], Target(target_type, int(target_id))
    after_id = int(part.cursor or 0)
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
        result.suspects.append(Suspect(FILTER, Subject(kind.name, *target), observed))
    return result


def _recheck_filters(suspects: Sequence[Suspect]) -> tuple[list[Finding], int]:
    """Return the filters that still deny an actor who is active before and after the check."""
    requests = [
        (KINDS[s.subject.what], Target(*s.subject[1:]), [int(i) for i in s.observed.split(",")])
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
    return findings, 0


def _of_kind(kind: Kind) -> DerivedList:
    def find_owner(key: str) -> int | None:
        owner = inspection.owner_of_list(key)
        return owner[1] if owner and owner[0] is kind else None

    return DerivedList(
        name=f"list-{kind.name}",
        find_owner=find_owner,
        compare=partial(inspection.compare_user_lists, kind),
        repair=lambda user_ids: inspection.drop_lists((kind, user_id) for user_id in user_ids),
    )


def _of_earliest(kind: Kind, target_type: str) -> DerivedList:
    def find_owner(key: str) -> int | None:
        pair = inspection.target_of_earliest(key)
        return pair[1].id if pair and pair[0] is kind and pair[1].type == target_type else None

    return DerivedList(
        name=f"earliest-{kind.name}-{target_type}",
        owner=target_type,
        find_owner=find_owner,
        compare=partial(inspection.compare_earliest, kind, target_type),
        repair=lambda ids: inspection.drop_earliest((kind, Target(target_type, i)) for i in ids),
    )


TARGETS = tuple(
    RollingComparison(
        name=f"targets:{target_type}",
        compare_range=partial(_compare_targets, target_type),
        estimate_left=partial(mysql_counts.estimate_targets, target_type),
        compare_changed=partial(_compare_changed_targets, target_type),
        find_changed=partial(mysql_counts.find_changed_targets, target_type),
        adds=(f"{FILTER}:",),
        reasons=(COUNTER, SORTED),
    )
    for target_type in TYPES
)
USERS = RollingComparison(
    name="users",
    compare_range=_compare_users,
    estimate_left=mysql_counts.estimate_users,
    compare_changed=_compare_changed_users,
    find_changed=mysql_counts.find_changed_users,
    reasons=(COUNTER,),
)
STATES = CachedState(
    find_subject=_find_subject,
    subjects=(*TARGET_KINDS, _USER),
    compare=compare_subjects,
    adds=(f"{FILTER}:",),
    reasons=OF_STATES,
    # One transaction repairs all findings of a message, also about ranges of targets and users.
    repairs=(Repair(subjects=(*TARGET_KINDS, *USER_TOTALS, _USER), repair=repair_counters.repair),),
)
FILTERS = PartComparison(
    name=FILTER, execute=_check_filter, recheck=_recheck_filters, reasons=(FILTER,)
)
LISTS = (
    *(_of_kind(kind) for kind in KINDS.values()),
    *(
        _of_earliest(kind, target_type)
        for kind in KINDS.values()
        for target_type in sorted(kind.targets)
    ),
)
