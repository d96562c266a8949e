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
from plaza.reactions.reactions import Fingerprint, Held, Unreadable

MOST_ID = messages.MAX_ID
MOST_VER = messages.MAX_VERSION
MOST_SAID = 400
MOST_FINDINGS_PER_MESSAGE = 100
_PART = text(1, 255)
_FINDINGS = list_of(ID, 1, MOST_FINDINGS_PER_MESSAGE)

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
HELD = "held"
BLOOM = "filter"

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
    said: str


class Suspect(NamedTuple):
    """What Redis says and MySQL doesn't confirm; ``seen`` is what it said, to be compared later."""

    look: str
    subject: Subject
    seen: str


@dataclass(slots=True)
class Tally:
    """How much was compared, and how much was passed over because it moved meanwhile."""

    targets: int = 0
    relations: int = 0
    users: int = 0
    hot: int = 0
    moving: int = 0


@dataclass(slots=True)
class Done:
    """What a step did: how far its part has got, what it found, and which parts are to be added."""

    reached: str
    is_last: bool
    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    suspects: list[Suspect] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


class Part(NamedTuple):
    """A part of a run, and how far it has got."""

    run_id: int
    name: str
    reached: str
    is_done: bool


class PartAsked(NamedTuple):
    """A message: take a part of a run further."""

    run_id: int
    part: str

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"run": self.run_id, "part": self.part})

    @classmethod
    def from_json(cls, body: str) -> PartAsked:
        """What ``to_json`` wrote. Raises BadRecord."""
        fields = messages.read_object(body)
        return cls(read(fields, "run", ID), read(fields, "part", _PART))


class RepairsAsked(NamedTuple):
    """A message: repair what was found, by the ids of the findings."""

    finding_ids: tuple[int, ...]

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"findings": self.finding_ids})

    @classmethod
    def from_json(cls, body: str) -> RepairsAsked:
        """What ``to_json`` wrote. Raises BadRecord."""
        return cls(tuple(read(messages.read_object(body), "findings", _FINDINGS)))


class Example(NamedTuple):
    """A finding, as a report shows it."""

    finding: Finding
    found_at: datetime
    repaired_at: datetime | None


@dataclass(frozen=True, slots=True)
class Report:
    """What a run compared and found. ``why``: reason -> how many; ``ended_at`` None: it goes on."""

    run_id: int
    started_at: datetime
    ended_at: datetime | None
    tally: Tally
    differing: int
    repaired: int
    why: Mapping[str, int]
    examples: Sequence[Example]

    @property
    def is_settled(self) -> bool:
        """It has ended, and all that differed is repaired."""
        return self.ended_at is not None and self.repaired >= self.differing


class Recorded(NamedTuple):
    """What MySQL says of a target and kind, at one instant, beside what Redis holds of it.

    ``known``: it has a counter. The fingerprint is of the same rows as that of Redis is.
    """

    known: bool
    total: int
    ver: int
    newest: Fingerprint


class Look(NamedTuple):
    """What came of looking at something in Redis: reason -> what each side said. Empty: they agree.

    ``is_certain``: Redis has heard of MySQL's present version, or of one that MySQL never had, so
    nothing can be on its way that would explain it.
    """

    reasons: Mapping[str, str] = {}
    is_certain: bool = True


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


def look_at_target(held: Held | Unreadable, recorded: Recorded) -> Look:
    """Hold a target in Redis against MySQL, which was read after it."""
    if isinstance(held, Unreadable):
        return Look({UNREADABLE: held.said})
    if held.waiting != held.entries:
        return Look({STUCK: f"Redis waits for {held.waiting}, the outbox has {held.entries}"})
    versions = f"Redis @{held.s}, MySQL @{recorded.ver}"
    if not recorded.known and (held.base or held.newest.actors):
        return Look({UNKNOWN: f"Redis {held.base}, {versions}"})
    reasons = {}
    if held.s > recorded.ver:
        reasons[AHEAD] = versions
    if held.base != recorded.total:
        reasons[TOTAL] = f"Redis {held.base}, counter {recorded.total}, {versions}"
    if held.newest != recorded.newest:
        reasons[MEMBERS] = (
            f"Redis {held.newest.actors}, rows {recorded.newest.actors} of them, {versions}"
        )
    return Look(reasons, is_certain=held.s >= recorded.ver)


def look_at_user(held: tuple[str, str], counter: UserCounter) -> Look:
    """Hold the projection of a user's totals against their counter, which was read after it."""
    ver = read_ver(held[0])
    try:
        shown = UserCounter.from_json(held[1])
        readable = all(type(n) is int for n in shown) and shown.ver == ver
    except (ValueError, TypeError, AttributeError):
        shown, readable = UserCounter(), False
    if ver is None or not readable:
        return Look({UNREADABLE: f"@{held[0]:.20} {held[1]:.300}"})
    return _look_at_projection(
        ver, shown[:-1] == counter[:-1], counter.ver, held[1], counter.to_json()
    )


def look_at_comments(held: tuple[str, str], total: int, counter_ver: int) -> Look:
    """Hold the projection of a post's comments against the counter, which was read after it."""
    ver = read_ver(held[0])
    if ver is None or not (held[1].isascii() and held[1].removeprefix("-").isdigit()):
        return Look({UNREADABLE: f"@{held[0]:.20} {held[1]:.20}"})
    return _look_at_projection(ver, int(held[1]) == total, counter_ver, held[1], str(total))


def _look_at_projection(ver: int, same: bool, counter_ver: int, shown: str, counted: str) -> Look:
    said = f"Redis {shown} @{ver}, MySQL {counted} @{counter_ver}"
    reasons = {}
    if ver > counter_ver:
        reasons[AHEAD] = said
    if not same:
        reasons[PROJECTION] = said
    return Look(reasons, is_certain=ver >= counter_ver)


def read_ver(text: str) -> int | None:
    """The version that ``text`` is, None if it is none."""
    if not (text.isascii() and text.isdigit()) or int(text) > MOST_VER:
        return None
    return int(text)


def seen_of(held: Any) -> str:
    """What is remembered of something that was seen in Redis, to find out whether it changed."""
    return (
        str(tuple(held) if isinstance(held, tuple) else held)
        .encode("ascii", "replace")
        .decode()[:512]
    )
