"""Comparisons of stores: what a context declares for the reconciliation. No I/O.

The manifest of a wing names them as ``compare``: a ``RollingComparison``, ``PartComparison``,
``CachedState`` or ``DerivedList`` each, or a tuple of them. The engine is
``operate/reconciliation``; it stores the names of parts, subjects, checks and reasons as they are
declared. ``CountedRows``, which a manifest names as ``counts``, are rows of a context that counters
of others count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from typing import Any, NamedTuple

from plaza.infra.derived.list_state import ListState
from plaza.infra.runtime import clock

_DAY_S = 86_400
CYCLE_S = 28 * _DAY_S  # in which everything is compared once
MIN_STEPS = 100  # of a quota: small tables are compared whole in each run

COUNTER = "counter"  # reason: a counter of MySQL is not the number of rows
LIST = "list"  # reason: a list in Redis is not what MySQL has

Counts = Mapping[tuple[int, str], int]
"""(id, what is counted) -> how many, without zeros."""


class Subject(NamedTuple):
    """``what`` is compared of a target, user, shop or voucher: it determines the comparison."""

    what: str
    type: str
    id: int

    @property
    def reference(self) -> str:
        return f"{self.type}:{self.id}"


class Finding(NamedTuple):
    """A difference: its reason, and the values of both stores as text."""

    reason: str
    subject: Subject
    details: str


class Suspect(NamedTuple):
    """A difference to check again; ``observed`` is what Redis returned the first time."""

    check: str
    subject: Subject
    observed: str


@dataclass(slots=True)
class Tally:
    """How much was compared; ``skipped``: subjects that changed between both checks. ``changed``:
    subjects compared because they had changed; the others exclude these."""

    targets: int = 0
    relations: int = 0
    users: int = 0
    cached: int = 0
    skipped: int = 0
    changed: int = 0

    @property
    def subjects(self) -> int:
        """Subjects compared in a range."""
        return self.targets + self.users + self.cached


class CycleMove(NamedTuple):
    """What a step changes of the cycle ``name``: where it continues, ``''`` at its end; how many
    subjects it compared; whether it has ended."""

    name: str
    cursor: str
    compared: int
    has_ended: bool


@dataclass(slots=True)
class StepResult:
    """The result of a step: its part's new cursor, what it found, and parts to add to the run.

    ``dirty``: (name of a comparison, subject) that changed. ``cleaned``: the comparison whose
    dirty rows up to the cursor were compared.
    """

    cursor: str
    is_last: bool
    tally: Tally = default(default_factory=Tally)
    findings: list[Finding] = default(default_factory=list)
    suspects: list[Suspect] = default(default_factory=list)
    parts: list[str] = default(default_factory=list)
    cycle: CycleMove | None = None
    dirty: list[tuple[str, int]] = default(default_factory=list)
    cleaned: str | None = None


class RunPart(NamedTuple):
    """A part of a run, its cursor, and what it did so far. ``quota``: subjects that it compares
    in this run; None: all."""

    run_id: int
    name: str
    cursor: str
    is_done: bool
    quota: int | None = None
    steps: int = 0
    subjects: int = 0


class Comparison(NamedTuple):
    """Reason -> the values of both stores as text; empty when they agree.

    ``is_conclusive``: Redis has MySQL's current version or a later one, so no commit in transit
    can explain the difference.
    """

    reasons: Mapping[str, str] = {}
    is_conclusive: bool = True


class Observation(NamedTuple):
    """``observed``: what Redis returned, as text. ``parts``: to add to the run for this state."""

    comparison: Comparison
    observed: str
    parts: tuple[str, ...] = ()


class RangeCounts(NamedTuple):
    """Counters, and numbers of rows, by (id, what is counted), without zeros.

    ``subjects``: number of ids; ``relations``: number of reactions that were counted.
    """

    counters: Counts
    rows: Counts
    subjects: int
    relations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """How findings about ``subjects``, each a ``what``, are repaired.

    ``repair(findings)``: corrects what still differs; returns how many counters were wrong. Raises
    MysqlDown, RedisDown, QueueDown. ``copied_from``: (what, type) of counters that it copies: a
    finding about one is repaired by it, too, after the counter.
    """

    subjects: Collection[str]
    repair: Callable[[Sequence[Finding]], int]
    copied_from: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingComparison:
    """A comparison of subjects with ids: in each run those that changed, and a quota of all.

    ``compare_range(after_id)``: compares the next subjects; ``cursor`` of its result is the last
    id, ``is_last`` whether none follow. ``estimate_left(after_id)``: about how many follow.
    ``compare_changed(ids)``: compares ids in ascending order; ``cursor`` is the last that it has
    dealt with. ``find_changed(after_seq, until_seq)``: the subjects of events of the log. Both are
    None when the log does not say what changed. Each is one bounded step. They raise MysqlDown,
    RedisDown. ``adds``: how names of parts begin that a step may add.
    """

    name: str
    compare_range: Callable[[int], StepResult]
    estimate_left: Callable[[int], int]
    compare_changed: Callable[[Sequence[int]], StepResult] | None = None
    find_changed: Callable[[int, int], Iterable[int]] | None = None
    adds: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartComparison:
    """A part of a run with a cursor of its own; ``name``: of the part, up to its first colon.

    ``execute(part)``: the next step. ``begins``: whether each run begins with it; otherwise steps
    add it. ``recheck(suspects)``: compares suspects of the check ``name`` again; returns (findings,
    number of suspects skipped). They raise MysqlDown, RedisDown.
    """

    name: str
    execute: Callable[[RunPart], StepResult]
    begins: bool = False
    recheck: Callable[[Sequence[Suspect]], tuple[list[Finding], int]] | None = None
    reasons: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedState:
    """States in Redis with the versions of counters, found by a scan of all keys.

    ``find_subject(key)``: the subject whose state ``key`` has, None for other keys. ``subjects``:
    each ``what`` of these. ``compare(subjects, name_actors)``: compares them with MySQL, which is
    read after Redis; omits those that Redis does not have. Raises RedisDown, MysqlDown. ``adds``:
    how names of parts begin that an observation may add.
    """

    find_subject: Callable[[str], Subject | None]
    subjects: Collection[str]
    compare: Callable[[Sequence[Subject], bool], dict[Subject, Observation]]
    adds: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()


class IdCycle(NamedTuple):
    """A rolling comparison of the owners of a list. ``read_ids(after_id, limit)``: the next ones in
    ascending order. ``estimate_left(after_id)``: about how many follow. Both raise MysqlDown."""

    name: str
    read_ids: Callable[[int, int], list[int]]
    estimate_left: Callable[[int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedList:
    """A list that Redis derives from MySQL and that can be dropped any time; ``name``: ``what`` of
    its subjects; ``owner``: their type.

    ``find_owner(key)``: the owner of a key, None for other keys; None if most keys have several
    owners: then ``cycle`` compares it. ``compare(ids)``: owner -> the state of the list, without
    owners of whom Redis has none; a constant number of round trips and statements. ``repair(ids)``:
    drops or corrects the lists of owners. Both raise RedisDown, MysqlDown.
    """

    name: str
    compare: Callable[[Sequence[int]], dict[int, ListState]]
    repair: Callable[[Sequence[int]], object]
    owner: str = "user"
    find_owner: Callable[[str], int | None] | None = None
    cycle: IdCycle | None = None


class CountedRows(NamedTuple):
    """Rows of a context that counters of others count, as parts of the statements that count them.

    ``of_users``: SELECTs of (total, user, number), with the placeholders ``within``, ``zeros`` and
    ``received``: a condition, columns to fill, kinds of reactions. ``of_targets``: (type of target,
    kind of counter) -> SELECTs of (kind, target, number) with ``prefix``, columns in front, and
    ``within``. ``owners``: a SELECT of the owners of the targets in ``changed``. ``user_ranges``,
    ``target_ranges``: (table, index, condition, column with the id) of these rows, for
    ``id_ranges``; of targets by type.
    """

    of_users: str
    of_targets: Mapping[tuple[str, str], tuple[str, ...]]
    owners: str
    user_ranges: tuple[tuple[str, str, str, str], ...]
    target_ranges: Mapping[str, tuple[tuple[str, str, str, str], ...]]


def is_in_quota(subject_id: int) -> bool:
    """Return whether a subject belongs to the quota of this day: each does in one of 28 days."""
    days = CYCLE_S // _DAY_S
    return subject_id % days == int(clock.now_s() // _DAY_S) % days


def choose(ids: Sequence[int], sizes: Mapping[int, int], max_rows: int) -> tuple[list[int], int]:
    """Return (the first of ``ids`` that have ``max_rows`` rows together, the last id considered).

    Leaves out ids that have more than ``max_rows`` each: their quota compares them.
    """
    chosen: list[int] = []
    rows, last = 0, ids[0]
    for subject_id in ids:
        size = sizes.get(subject_id, 0)
        if size <= max_rows:
            if chosen and rows + size > max_rows:
                break
            chosen.append(subject_id)
            rows += size
        last = subject_id
    return chosen, last


def compare_counts(of_type: str, counters: Counts, rows: Counts) -> list[Finding]:
    """Return a finding for each counter that is not its number of rows."""
    differing = {key for key, _ in counters.items() ^ rows.items()}
    return [
        Finding(
            COUNTER,
            Subject(what, of_type, subject_id),
            f"counter {counters.get((subject_id, what), 0)},"
            f" rows {rows.get((subject_id, what), 0)}",
        )
        for subject_id, what in sorted(differing)
    ]


def render_observed(cached: Any) -> str:
    """Return a text of up to 512 characters that differs when the state in Redis differs."""
    return (
        str(tuple(cached) if isinstance(cached, tuple) else cached)
        .encode("ascii", "replace")
        .decode()[:512]
    )
