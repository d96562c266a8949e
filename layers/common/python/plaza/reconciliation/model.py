"""What is compared with what, when two differ, and what is on its way and so left alone. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from plaza.counters import USER_COLUMNS, UserCounter
from plaza.infra import messages
from plaza.infra.messages import ID, list_of, read, text
from plaza.reactions import KINDS, Target
from plaza.reactions.model import CachedTarget, Fingerprint, Unreadable

MAX_ID = messages.MAX_ID
MAX_VERSION = messages.MAX_VERSION
MAX_DETAIL_CHARS = 400
MAX_FINDINGS_PER_MESSAGE = 100
_PART = text(1, 255)
_FINDINGS = list_of(ID, 1, MAX_FINDINGS_PER_MESSAGE)

TYPES = tuple(sorted({target_type for kind in KINDS.values() for target_type in kind.targets}))
CONTENT_TOTALS = {kind.name: kind.total for kind in KINDS.values()} | {"comments": "comment_total"}
USER_TOTALS = {column.removesuffix("_total"): column for column in USER_COLUMNS}

# Why something differs: the reasons of findings.
COUNTER = "counter"  # a counter of MySQL is not the number of rows
TOTAL = "total"  # a total of Redis is not the counter
MEMBERS = "members"  # who is in recent is not who is on in the rows
FILTER = "filter"  # somebody who is on would be taken for off
PROJECTION = "projection"  # what Redis shows of a user or of comments is not the counter
AHEAD = "ahead"  # Redis has a version that MySQL never had, and would not be told anything newer
UNKNOWN = "unknown"  # Redis counts something that MySQL has no counter of
UNREADABLE = "unreadable"  # what is in Redis is not what Plaza writes
STUCK = "stuck"  # the outbox has not as many entries as Redis waits for

# How Redis is looked at: what it holds of a target or projects of a counter, or a Bloom filter.
CHECK_STATE = "state"
CHECK_FILTER = "filter"

Counts = Mapping[tuple[int, str], int]
"""(id, what is counted) -> how many; what there is none of is not in it."""


class Subject(NamedTuple):
    """What is compared: ``what`` is a kind of reaction, ``comments``, one of a user's totals, or
    ``user``, all of these together."""

    what: str
    type: str
    id: int

    @property
    def target(self) -> Target:
        """The post, comment, review or user that it is about."""
        return Target(self.type, self.id)


class Finding(NamedTuple):
    """Something differs: why, and what each side says."""

    reason: str
    subject: Subject
    details: str


class Suspect(NamedTuple):
    """What Redis says and MySQL doesn't confirm; ``observed`` is what it said, to be compared later."""

    check: str
    subject: Subject
    observed: str


@dataclass(slots=True)
class Tally:
    """How much was compared, and how much was passed over because it moved meanwhile."""

    targets: int = 0
    relations: int = 0
    users: int = 0
    cached: int = 0
    skipped: int = 0


@dataclass(slots=True)
class StepResult:
    """What a step did: how far its part has got, what it found, and which parts are to be added."""

    position: str
    is_last: bool
    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    suspects: list[Suspect] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


class RunPart(NamedTuple):
    """A part of a run, and how far it has got."""

    run_id: int
    name: str
    position: str
    is_done: bool


class ComparePart(NamedTuple):
    """A message: take a part of a run further."""

    run_id: int
    part: str

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"run": self.run_id, "part": self.part})

    @classmethod
    def from_json(cls, body: str) -> ComparePart:
        """What ``to_json`` wrote. Raises InvalidMessage."""
        fields = messages.read_object(body)
        return cls(read(fields, "run", ID), read(fields, "part", _PART))


class RepairFindings(NamedTuple):
    """A message: repair what was found, by the ids of the findings."""

    finding_ids: tuple[int, ...]

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"findings": self.finding_ids})

    @classmethod
    def from_json(cls, body: str) -> RepairFindings:
        """What ``to_json`` wrote. Raises InvalidMessage."""
        return cls(tuple(read(messages.read_object(body), "findings", _FINDINGS)))


class Example(NamedTuple):
    """A finding, as a report shows it."""

    finding: Finding
    found_at: datetime
    repaired_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run compared and found. ``reason_counts``: reason -> how many; ``ended_at`` None: it goes on."""

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
        """It has ended, and all that differed is repaired."""
        return self.ended_at is not None and self.repaired >= self.differing


class MysqlState(NamedTuple):
    """What MySQL says of a target and kind, at one instant, beside what Redis holds of it.

    ``has_counter``: it has a counter. The fingerprint is of the same rows as that of Redis is.
    """

    has_counter: bool
    total: int
    version: int
    newest: Fingerprint


class Comparison(NamedTuple):
    """What came of looking at something in Redis: reason -> what each side said. Empty: they agree.

    ``is_conclusive``: Redis has heard of MySQL's present version, or of one that MySQL never had, so
    nothing can be on its way that would explain it.
    """

    reasons: Mapping[str, str] = {}
    is_conclusive: bool = True


def compare_counts(of_type: str, counters: Counts, rows: Counts) -> list[Finding]:
    """Where counters and the number of rows differ, in both directions."""
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
    """Hold a target in Redis against MySQL, which was read after it."""
    if isinstance(cached, Unreadable):
        return Comparison({UNREADABLE: cached.detail})
    if cached.outbox_count != cached.entries:
        return Comparison(
            {STUCK: f"Redis waits for {cached.outbox_count}, the outbox has {cached.entries}"}
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
            f"Redis {cached.newest.actors}, rows {recorded.newest.actors} of them, {versions}"
        )
    return Comparison(reasons, is_conclusive=cached.db_version >= recorded.version)


def compare_user_totals(cached: tuple[str, str], counter: UserCounter) -> Comparison:
    """Hold the projection of a user's totals against their counter, which was read after it."""
    version = parse_version(cached[0])
    try:
        shown = UserCounter.from_json(cached[1])
        readable = all(type(n) is int for n in shown) and shown.version == version
    except (ValueError, TypeError, AttributeError):
        shown, readable = UserCounter(), False
    if version is None or not readable:
        return Comparison({UNREADABLE: f"@{cached[0]:.20} {cached[1]:.300}"})
    return _compare_projection(
        version, shown[:-1] == counter[:-1], counter.version, cached[1], counter.to_json()
    )


def compare_comment_total(cached: tuple[str, str], total: int, counter_version: int) -> Comparison:
    """Hold the projection of a post's comments against the counter, which was read after it."""
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
    """The version that ``text`` is, None if it is none."""
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_VERSION:
        return None
    return int(text)


def render_observed(cached: Any) -> str:
    """What is remembered of something that was seen in Redis, to find out whether it changed."""
    return (
        str(tuple(cached) if isinstance(cached, tuple) else cached)
        .encode("ascii", "replace")
        .decode()[:512]
    )
