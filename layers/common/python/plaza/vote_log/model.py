"""Days of the vote log: when one is closed, the format of its archive, its checksum. No I/O."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from plaza.reactions import KINDS, Target

DAYS_OPEN = 8  # weekly rankings and late events need these
DAYS_AHEAD = 14
DAYS_BACK = 60  # rows in the catch-all partition get partitions by day back to here
COMMENTS = "comment_total"
POSTS = "posts_total"
CONTENT_COLUMNS = (*(kind.total for kind in KINDS.values()), COMMENTS)
USER_COLUMNS = (
    *(kind.received for kind in KINDS.values()),
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

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "events": self.sum.events,
            "crc32_sum": self.sum.crc32,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "min_version": self.min_version_us,
            "max_version": self.max_version_us,
            "last": list(self.last),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ArchivePart:
        """Build from the result of ``to_dict``. Raises KeyError, TypeError, ValueError."""
        target_type, target_id, kind, actor_id, version_us = fields["last"]
        return cls(
            str(fields["name"]),
            Checksum(int(fields["events"]), int(fields["crc32_sum"])),
            int(fields["bytes"]),
            str(fields["sha256"]),
            int(fields["min_version"]),
            int(fields["max_version"]),
            (str(target_type), int(target_id), str(kind), int(actor_id), int(version_us)),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The parts of an archive of a day. One without parts is an archive of no events."""

    day: date
    parts: tuple[ArchivePart, ...]

    @property
    def sum(self) -> Checksum:
        return Checksum(sum(p.sum.events for p in self.parts), sum(p.sum.crc32 for p in self.parts))

    def to_json(self) -> str:
        """Encode for S3; the same archive always has the same text."""
        return json.dumps(
            {
                "day": self.day.isoformat(),
                "events": self.sum.events,
                "crc32_sum": self.sum.crc32,
                "bytes": sum(part.bytes for part in self.parts),
                "min_version": min((part.min_version_us for part in self.parts), default=0),
                "max_version": max((part.max_version_us for part in self.parts), default=0),
                "objects": [part.to_dict() for part in self.parts],
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Decode the result of ``to_json``. Raises KeyError, TypeError, ValueError."""
        fields = json.loads(text)
        parts = tuple(ArchivePart.from_dict(part) for part in fields["objects"])
        return cls(date.fromisoformat(fields["day"]), parts)


@dataclass(frozen=True, slots=True)
class ArchiveProgress:
    """The parts written so far of an archive whose checksum will be ``goal``."""

    goal: Checksum
    parts: tuple[ArchivePart, ...]

    def to_json(self) -> str:
        fields = [part.to_dict() for part in self.parts]
        return json.dumps(
            {"events": self.goal.events, "crc32_sum": self.goal.crc32, "parts": fields}
        )

    @classmethod
    def from_json(cls, text: str) -> ArchiveProgress:
        """Decode the result of ``to_json``. Raises KeyError, TypeError, ValueError."""
        fields = json.loads(text)
        goal = Checksum(int(fields["events"]), int(fields["crc32_sum"]))
        return cls(goal, tuple(ArchivePart.from_dict(part) for part in fields["parts"]))


class CounterKey(NamedTuple):
    """A counter: ``column`` of a target in content_counter, or of a user in user_counter."""

    of: Target
    column: str


class Scope(NamedTuple):
    """The counters of one target, of one user or, with neither, of all."""

    target: Target | None = None
    user_id: int | None = None

    def has(self, one: CounterKey) -> bool:
        """Return whether the counter ``one`` is in the scope."""
        if self.target is not None:
            return one.of == self.target and one.column in CONTENT_COLUMNS
        if self.user_id is not None:
            return one.of == ("user", self.user_id) and one.column in USER_COLUMNS
        return True


def read_lines(text: str) -> list[LoggedEvent]:
    """Return the rows of an object. Raises KeyError, TypeError, ValueError."""
    # One array is parsed faster than many objects.
    return [
        LoggedEvent(
            event["target_type"],
            event["target_id"],
            event["kind"],
            event["actor_id"],
            event["version"],
            event["state"],
            event["change"],
        )
        for event in json.loads(f"[{','.join(text.splitlines())}]")
    ]


def checksum(lines: Iterable[ArchiveLine]) -> Checksum:
    """Return the checksum of ``lines``; ``mysql_log.read_checksums`` computes the same in MySQL."""
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
