"""What is compared, when two stores differ, and which differences may be in transit. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from plaza.core.counters import COMMENT, USER_COLUMNS, USER_COUNTER, UserCounter
from plaza.core.reactions import KINDS, Target
from plaza.core.reactions.model import CachedTarget, Fingerprint, Unreadable
from plaza.infra.runtime.codec import ASCII, ID, MAX_VERSION, Meta, Struct, field
from plaza.infra.runtime.codec import MAX_ID as MAX_ID

MAX_DETAIL_CHARS = 400
MAX_FINDINGS_PER_MESSAGE = 100
CYCLE_S = 28 * 86_400  # in which everything is compared once
_DAY_S = 86_400
MAX_HASTE = 4  # ordinary quotas that a run takes at most of a cycle that is late

TYPES = tuple(sorted({target_type for kind in KINDS.values() for target_type in kind.targets}))
TARGET_KINDS = (*KINDS, COMMENT)
SHOP = "shop"
SHOP_TOTALS = ("reviews", "scores")
USER_TOTALS = {column.removesuffix("_total"): column for column in USER_COLUMNS}

# The reasons of findings.
COUNTER = "counter"  # a counter of MySQL is not the number of rows
TOTAL = "total"  # a total of Redis is not the counter
MEMBERS = "members"  # the actors in recent are not the newest active rows
FILTER = "filter"  # the Bloom filter denies an active actor
PROJECTION = "projection"  # the projection of a user or of comments is not the counter
AHEAD = "ahead"  # Redis has a version that MySQL never had, and refuses MySQL's versions
UNKNOWN = "unknown"  # Redis has a total, MySQL has no counter
UNREADABLE = "unreadable"  # Plaza does not write such a value
SORTED = "sorted"  # the sorted list of a target has other entries than there are rows
STUCK = "stuck"  # the outbox does not have outbox_count entries
UNREAD_TOTAL = "unread-total"  # unread is not the number of groups with something fresh
UNREAD_BLOCKS = "unread-blocks"  # blocking is not the number of blocks by the user
UNREAD_SEQUENCE = "unread-sequence"  # an unread counter is behind one of its groups
SLOT = "slot"  # the slot of a review is missing, or has outlived the review
UNREAD_FRESH = (
    "unread-fresh"  # fresh of a group is not the number of rows that notified since it was read
)
HOURS = "hours"  # hourly likes of a post are not the sums of the log
REVIEW_LIKES = "review_likes"  # likes of a review that were rolled up are not its likes
LIST = "list"  # a list in Redis is not what MySQL has

CHECK_STATE = "state"  # a target's state or a counter's projection
CHECK_FILTER = "filter"  # a Bloom filter
CHECK_LIST = "list"  # a list of ``derived_lists``

Counts = Mapping[tuple[int, str], int]
"""(id, what is counted) -> how many, without zeros."""


class Subject(NamedTuple):
    """``what`` is compared of a target, user or shop: a kind of reaction, ``comments``, one of a
    user's totals, or ``user`` for all of these; ``reviews`` or ``scores`` of a shop; ``likes`` or
    ``slot`` of a review; ``hours`` of a post; ``unread`` of a user, or ``unread-<kind>`` for a
    group of the target's owner; a name of ``derived_lists.LISTS``."""

    what: str
    type: str
    id: int

    @property
    def target(self) -> Target:
        return Target(self.type, self.id)


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


class NewPart(NamedTuple):
    """A part that a run begins with."""

    name: str
    cursor: str = ""
    quota: int | None = None


class Cycle(NamedTuple):
    """The open cycle of a comparison, or of the log.

    ``open_s``: seconds since it began. ``ended_s``: since the end of the latest complete one, None
    before the first.
    """

    cursor: str
    compared: int
    expected: int
    open_s: int
    ended_s: int | None


class RollingComparison(NamedTuple):
    """A comparison of subjects with ids: in each run those that changed, and a quota of all.

    ``compare_range(after_id)``: compares the next subjects; ``cursor`` of its result is the last
    id, ``is_last`` whether none follow. ``estimate_left(after_id)``: about how many follow.
    ``compare_changed(ids)``: compares ids in ascending order; ``cursor`` is the last that it has
    dealt with. ``find_changed(after_seq, until_seq)``: the subjects of events of the log. Both are
    None when the log does not say what changed. Each is one bounded step. They raise MysqlDown,
    RedisDown.
    """

    name: str
    compare_range: Callable[[int], StepResult]
    estimate_left: Callable[[int], int]
    compare_changed: Callable[[Sequence[int]], StepResult] | None = None
    find_changed: Callable[[int, int], Iterable[int]] | None = None


class ComparePart(Struct, frozen=True):
    """A message: process the next steps of a part."""

    run_id: ID = field(name="run")
    part: Annotated[str, Meta(min_length=1, max_length=255, pattern=ASCII)]


class RepairFindings(Struct, frozen=True):
    """A message: repair these findings."""

    finding_ids: Annotated[
        tuple[ID, ...], Meta(min_length=1, max_length=MAX_FINDINGS_PER_MESSAGE)
    ] = field(name="findings")


class Example(NamedTuple):
    finding: Finding
    found_at: datetime
    repaired_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """``ended_at``: None until the run has ended. ``reason_counts``: reason -> findings."""

    run_id: int
    started_at: datetime
    ended_at: datetime | None
    tally: Tally
    differing: int
    repaired: int
    reason_counts: Mapping[str, int]
    examples: Sequence[Example]

    @property
    def is_resolved(self) -> bool:
        """Whether the run has ended and all its findings are repaired."""
        return self.ended_at is not None and self.repaired >= self.differing


class MysqlState(NamedTuple):
    """MySQL's state of a target and kind. ``newest``: fingerprint of rows above Redis' floor."""

    has_counter: bool
    total: int
    version: int
    newest: Fingerprint


class Comparison(NamedTuple):
    """Reason -> the values of both stores as text; empty when they agree.

    ``is_conclusive``: Redis has MySQL's current version or a later one, so no commit in transit
    can explain the difference.
    """

    reasons: Mapping[str, str] = {}
    is_conclusive: bool = True


def compute_quota(compared: int, left: int, open_s: float, interval_s: float) -> int:
    """Return how many of the ``left`` subjects of a cycle a run compares, so that the cycle ends
    28 days after it began.

    ``compared``: subjects so far. ``open_s``: age of the cycle. ``interval_s``: time between runs.
    A cycle that is late takes four ordinary quotas at most.
    """
    interval_s = min(max(interval_s, _DAY_S), CYCLE_S)
    left_s = CYCLE_S - max(open_s, 0)
    limit = math.ceil(MAX_HASTE * (compared + left) * interval_s / CYCLE_S)
    if left_s <= interval_s:  # the last run of the cycle: ``left`` may be an underestimate
        return limit
    return min(math.ceil(left * interval_s / left_s), limit)


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


def compare_target(cached: CachedTarget | Unreadable, recorded: MysqlState) -> Comparison:
    """Compare a target in Redis with MySQL, which was read after it."""
    if isinstance(cached, Unreadable):
        return Comparison({UNREADABLE: cached.detail})
    if cached.outbox_count != cached.entries:
        return Comparison(
            {STUCK: f"outbox_count {cached.outbox_count}, the outbox has {cached.entries}"}
        )
    versions = f"Redis @{cached.db_version}, MySQL @{recorded.version}"
    if not recorded.has_counter and (cached.base or cached.newest.actors):
        return Comparison({UNKNOWN: f"Redis {cached.base}, {versions}"})
    reasons = {}
    if cached.db_version > recorded.version:
        reasons[AHEAD] = versions
    if cached.base != recorded.total:
        reasons[TOTAL] = f"Redis {cached.base}, counter {recorded.total}, {versions}"
    if cached.newest != recorded.newest:
        reasons[MEMBERS] = (
            f"Redis {cached.newest.actors} actors, rows {recorded.newest.actors}, {versions}"
        )
    return Comparison(reasons, is_conclusive=cached.db_version >= recorded.version)


def compare_user_totals(cached: tuple[str, str], counter: UserCounter) -> Comparison:
    """Compare a projection (version, value) of a user's totals with the counter, read after it."""
    version = parse_version(cached[0])
    shown = USER_COUNTER.read(cached[1])
    if version is None or shown is None or shown.version != version:
        return Comparison({UNREADABLE: f"@{cached[0]:.20} {cached[1]:.300}"})
    return _compare_projection(
        version,
        shown[:-1] == counter[:-1],
        counter.version,
        cached[1],
        USER_COUNTER.encode(counter),
    )


def compare_comment_total(cached: tuple[str, str], total: int, counter_version: int) -> Comparison:
    """Compare a projection (version, value) of comments with the counter, read after it."""
    version = parse_version(cached[0])
    if version is None or not (cached[1].isascii() and cached[1].removeprefix("-").isdigit()):
        return Comparison({UNREADABLE: f"@{cached[0]:.20} {cached[1]:.20}"})
    return _compare_projection(
        version, int(cached[1]) == total, counter_version, cached[1], str(total)
    )


def _compare_projection(
    version: int, same: bool, counter_version: int, shown: str, counted: str
) -> Comparison:
    details = f"Redis {shown} @{version}, MySQL {counted} @{counter_version}"
    reasons = {}
    if version > counter_version:
        reasons[AHEAD] = details
    if not same:
        reasons[PROJECTION] = details
    return Comparison(reasons, is_conclusive=version >= counter_version)


def parse_version(text: str) -> int | None:
    """Return ``text`` as a version, None if it is not one."""
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_VERSION:
        return None
    return int(text)


def render_observed(cached: Any) -> str:
    """Return a text of up to 512 characters that differs when the state in Redis differs."""
    return (
        str(tuple(cached) if isinstance(cached, tuple) else cached)
        .encode("ascii", "replace")
        .decode()[:512]
    )
