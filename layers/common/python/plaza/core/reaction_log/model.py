"""Days of the reaction log: when one is closed, the format of its archive, its checksum. No I/O."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as default
from datetime import date, timedelta
from typing import NamedTuple

from plaza.core.counters import COMMENT
from plaza.core.reactions import KINDS, Target
from plaza.infra.runtime.codec import Struct, json_codec, values_of

DAYS_OPEN = 8  # weekly rankings and late events need these
DAYS_AHEAD = 14
DAYS_BACK = 60  # rows in the catch-all partition get partitions by day back to here
POSTS = "posts_total"
TARGET_KINDS = (*KINDS, COMMENT)
USER_COLUMNS = (
    *(kind.received for kind in KINDS.values() if kind.received),
    *(kind.given for kind in KINDS.values() if kind.given),
    POSTS,
)


class LoggedEvent(NamedTuple):
    """A row of the log: an event, and its change of the count of its target and kind."""

    target_type: str
    target_id: int
    kind: str
    actor_id: int
    version_us: int
    state: int
    change: int


class ArchiveLine(NamedTuple):
    """A row of the log in an archive: JSON in one line."""

    text: str
    version_us: int


LogKey = tuple[str, int, str, int, int]
"""The primary key of a row: the first five fields of ``LoggedEvent``."""


class Checksum(NamedTuple):
    """The number of rows and the sum of the CRC-32 of their lines. MySQL can compute it, too."""

    events: int
    crc32: int


class Partition(NamedTuple):
    """A partition of the log: rows of days before ``below``, None for the catch-all partition."""

    name: str
    below: date | None


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """An object of an archive: gzipped JSON lines, each a row of the log.

    ``sum``: checksum of its events; ``bytes`` and ``sha256`` (hex) are of the object. ``last``:
    primary key of its last event.
    """

    name: str
    sum: Checksum
    bytes: int
    sha256: str
    min_version_us: int
    max_version_us: int
    last: LogKey


@dataclass(frozen=True, slots=True)
class Manifest:
    """The parts of an archive of a day. One without parts is an archive of no events."""

    day: date
    parts: tuple[ArchivePart, ...]

    @property
    def sum(self) -> Checksum:
        return Checksum(sum(p.sum.events for p in self.parts), sum(p.sum.crc32 for p in self.parts))


@dataclass(frozen=True, slots=True)
class ArchiveProgress:
    """The parts written so far of an archive whose checksum will be ``goal``."""

    goal: Checksum
    parts: tuple[ArchivePart, ...]


@dataclass(frozen=True, slots=True)
class PartitionSums:
    """The checksums of a partition's days. ``after``: primary key of the last row in them.
    ``verified``: name of a manifest -> how many of its parts were read back."""

    sums: dict[date, Checksum] = default(default_factory=dict)
    after: LogKey | None = None
    is_complete: bool = False
    verified: dict[str, int] = default(default_factory=dict)

    def add(self, page: Mapping[date, Checksum], after: LogKey | None) -> PartitionSums:
        """Return these with the next page, after which ``after`` is None at the end."""
        sums = dict(self.sums)
        for day, (events, crc32) in page.items():
            before = sums.get(day, Checksum(0, 0))
            sums[day] = Checksum(before.events + events, before.crc32 + crc32)
        return replace(self, sums=sums, after=after, is_complete=after is None)


class _Line(Struct, frozen=True, gc=False):
    target_type: str
    target_id: int
    kind: str
    actor_id: int
    version: int
    state: int
    change: int


class _Part(Struct, frozen=True):
    name: str
    events: int
    crc32_sum: int
    bytes: int
    sha256: str
    min_version: int
    max_version: int
    last: LogKey


class _Manifest(Struct, frozen=True):
    day: date
    events: int
    crc32_sum: int
    bytes: int
    min_version: int
    max_version: int
    objects: list[_Part]


class _Progress(Struct, frozen=True):
    events: int
    crc32_sum: int
    parts: list[_Part]


class _DaySum(Struct, frozen=True):
    day: date
    events: int
    crc32_sum: int


class _Sums(Struct, frozen=True):
    days: list[_DaySum]
    after: LogKey | None
    is_complete: bool
    verified: dict[str, int]


def _pack_part(part: ArchivePart) -> _Part:
    return _Part(
        part.name,
        *part.sum,
        part.bytes,
        part.sha256,
        part.min_version_us,
        part.max_version_us,
        part.last,
    )


def _unpack_part(part: _Part) -> ArchivePart:
    name, events, crc32, *rest = values_of(part)
    return ArchivePart(name, Checksum(events, crc32), *rest)


def _pack_manifest(manifest: Manifest) -> _Manifest:
    parts = manifest.parts
    return _Manifest(
        manifest.day,
        *manifest.sum,
        sum(part.bytes for part in parts),
        min((part.min_version_us for part in parts), default=0),
        max((part.max_version_us for part in parts), default=0),
        [_pack_part(part) for part in parts],
    )


LINE = json_codec(
    "reaction_log_lines", _Line, lambda line: LoggedEvent(*values_of(line)), lambda row: _Line(*row)
)
MANIFEST = json_codec(
    "reaction_log_manifests",
    _Manifest,
    lambda decoded: Manifest(decoded.day, tuple(map(_unpack_part, decoded.objects))),
    _pack_manifest,
)
PROGRESS = json_codec(
    "reaction_log_progress",
    _Progress,
    lambda decoded: ArchiveProgress(
        Checksum(decoded.events, decoded.crc32_sum), tuple(map(_unpack_part, decoded.parts))
    ),
    lambda progress: _Progress(*progress.goal, [_pack_part(part) for part in progress.parts]),
)
SUMS = json_codec(
    "reaction_log_sums",
    _Sums,
    lambda decoded: PartitionSums(
        {day.day: Checksum(day.events, day.crc32_sum) for day in decoded.days},
        *values_of(decoded)[1:],
    ),
    lambda sums: _Sums(
        [_DaySum(day, *total) for day, total in sorted(sums.sums.items())],
        sums.after,
        sums.is_complete,
        sums.verified,
    ),
)


class CounterKey(NamedTuple):
    """A counter: of a target and kind, or of a user and a column of user_counter; ``name`` is the
    kind or the column."""

    of: Target
    name: str


class Scope(NamedTuple):
    """The counters of one target, of one user or, with neither, of all."""

    target: Target | None = None
    user_id: int | None = None

    def has(self, counter: CounterKey) -> bool:
        """Return whether ``counter`` is in the scope."""
        if self.target is not None:
            return counter.of == self.target and counter.name in TARGET_KINDS
        if self.user_id is not None:
            return counter.of == ("user", self.user_id) and counter.name in USER_COLUMNS
        return True


def read_lines(text: str) -> list[LoggedEvent]:
    """Return the rows of an object. Raises Undecodable."""
    return [LINE.decode(line) for line in text.splitlines()]


def checksum(lines: Iterable[ArchiveLine]) -> Checksum:
    """Return the checksum of ``lines``; ``mysql_log.sum_page`` computes the same in MySQL."""
    events = crc32 = 0
    for line in lines:
        events += 1
        crc32 += zlib.crc32(line.text.encode())
    return Checksum(events, crc32)


def is_closed(partition: Partition, today: date) -> bool:
    """Return whether every day in ``partition`` is older than eight days."""
    return partition.below is not None and partition.below <= today - timedelta(days=DAYS_OPEN)


def plan_days(highest: date | None, oldest: date | None, today: date) -> list[date]:
    """Return the days to split off the catch-all partition, one partition each.

    ``highest``: end of the highest other partition, None without one; ``oldest``: oldest day in the
    catch-all partition. The first new partition also takes everything before it.
    """
    earliest = today - timedelta(days=DAYS_BACK)
    if highest is None:
        first = max(earliest, min(today, oldest or today))
    else:
        first = max(earliest, highest)
    count = (today - first).days + DAYS_AHEAD + 1
    return [first + timedelta(days=n) for n in range(max(count, 0))]


def partition_of(day: date) -> Partition:
    return Partition(f"p{day:%Y%m%d}", day + timedelta(days=1))


def last_key(lines: Sequence[ArchiveLine]) -> LogKey:
    """Return the primary key of the last of ``lines``."""
    of, target_id, kind, actor, version_us, _, _ = read_lines(lines[-1].text)[0]
    return of, target_id, kind, actor, version_us
