"""The comparisons that the contexts of a deployment declare, by name.

They are loaded by the first call, after the start of a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from plaza.infra.contexts import offers
from plaza.infra.derived.comparisons import (
    LIST,
    CachedState,
    DerivedList,
    Finding,
    IdCycle,
    PartComparison,
    Repair,
    RollingComparison,
    StepResult,
    Subject,
    Suspect,
)
from plaza.infra.derived.list_state import ListState
from plaza.infra.runtime.codec import MAX_ID

_LISTED_PER_STEP = 500

Declared = RollingComparison | PartComparison | CachedState | DerivedList


@cache
def list_comparisons() -> tuple[Declared, ...]:
    """Return all comparisons, in the order of the wings."""
    comparisons: list[Declared] = []
    for _, offered in offers("compare"):
        comparisons += offered if isinstance(offered, tuple) else [offered]
    return tuple(comparisons)


@cache
def rolling() -> Mapping[str, RollingComparison]:
    """Return name -> comparison of subjects by their ids."""
    by_ids = [each for each in list_comparisons() if isinstance(each, RollingComparison)]
    by_ids += [
        RollingComparison(
            name=each.cycle.name,
            compare_range=partial(_compare_page, each, each.cycle),
            estimate_left=each.cycle.estimate_left,
        )
        for each in lists().values()
        if each.cycle
    ]
    return {each.name: each for each in by_ids}


@cache
def parts() -> Mapping[str, PartComparison]:
    """Return name up to the first colon -> comparison that is a part of its own."""
    return {each.name: each for each in list_comparisons() if isinstance(each, PartComparison)}


@cache
def states() -> Sequence[CachedState]:
    """Return the comparisons of states that have versions."""
    return [each for each in list_comparisons() if isinstance(each, CachedState)]


@cache
def lists() -> Mapping[str, DerivedList]:
    """Return ``what`` of a subject -> the list."""
    return {each.name: each for each in list_comparisons() if isinstance(each, DerivedList)}


@cache
def list_repairs() -> Sequence[Repair]:
    """Return what repairs findings: counters before what is copied from them."""
    repairs: list[Repair] = []
    for each in list_comparisons():
        if isinstance(each, DerivedList):
            repairs.append(Repair(subjects=(each.name,), repair=partial(_repair_list, each)))
        else:
            repairs += each.repairs
    return repairs


def find_subject(key: str) -> Subject | None:
    """Return the subject whose state ``key`` has, None if it can't be compared with MySQL."""
    for state in states():
        if subject := state.find_subject(key):
            return subject
    for name, derived in lists().items():
        if derived.find_owner and (owner_id := derived.find_owner(key)) is not None:
            return Subject(name, derived.owner, owner_id)
    return None


def compare_lists(subjects: Sequence[Subject]) -> dict[Subject, ListState]:
    """Compare lists with MySQL; omit subjects of which Redis has none. At most two round trips and
    a statement for each kind of list, and a statement for each 20 inboxes. Raises RedisDown,
    MysqlDown."""
    ids: dict[str, list[int]] = {}
    for subject in sorted(set(subjects)):
        ids.setdefault(subject.what, []).append(subject.id)
    return {
        Subject(name, lists()[name].owner, owner_id): state
        for name, owner_ids in ids.items()
        for owner_id, state in lists()[name].compare(owner_ids).items()
    }


def _compare_page(derived: DerivedList, cycle: IdCycle, after_id: int) -> StepResult:
    """Compare a page of owners of a list; what differs becomes a suspect."""
    ids = cycle.read_ids(after_id, _LISTED_PER_STEP)
    result = StepResult(str(ids[-1] if ids else MAX_ID), is_last=len(ids) < _LISTED_PER_STEP)
    result.tally.cached = len(ids)
    states_of = compare_lists([Subject(derived.name, derived.owner, each) for each in ids])
    result.suspects += [
        Suspect(LIST, subject, state.observed)
        for subject, state in states_of.items()
        if state.differences
    ]
    return result


def _repair_list(derived: DerivedList, findings: Sequence[Finding]) -> int:
    derived.repair(sorted({finding.subject.id for finding in findings}))
    return 0
