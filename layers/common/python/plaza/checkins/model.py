"""What a check-in is: rules and events. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from plaza.infra import messages
from plaza.infra.errors import Unavailable
from plaza.infra.messages import ID, InvalidMessage, integer, read, text

FIRST_MONTH = date(2025, 1, 1)  # there was nothing before
_FIELDS = ("user_id", "day", "version")
_DAY = text(10, 10)
_VERSION = integer(1, messages.MAX_VERSION)
_EARLIEST, _LATEST = timedelta(hours=-12), timedelta(hours=14)  # of all the zones there are


class CheckInsKeepChanging(Unavailable):
    """The check-ins of the user changed each time they were read."""


@dataclass(frozen=True, slots=True)
class CheckInEvent:
    """A user checked in on ``day``, their own; ``version_us`` is when, microseconds since 1970.

    There is no event that takes it back: any order, and any number of times, comes to the same.
    ``request_id`` is an attribute of the message, not of its body: None where nobody knows it.
    """

    user_id: int
    day: date
    version_us: int
    request_id: str | None = None

    def to_json(self) -> str:
        """The message on the queue."""
        return messages.encode(
            {"user_id": self.user_id, "day": self.day.isoformat(), "version": self.version_us}
        )

    @classmethod
    def from_json(cls, body: str) -> CheckInEvent:
        """The event in a message. Raises InvalidMessage, also for a day that it was nowhere then."""
        fields = messages.read_object(body)
        event = cls(
            read(fields, "user_id", ID),
            read(fields, "day", _day),
            read(fields, "version", _VERSION),
        )
        if len(fields) > len(_FIELDS):  # what else it says may change what it means
            raise InvalidMessage(f"fields are {len(fields)}, not {', '.join(_FIELDS)}")
        if not is_possible_day(event.day, event.version_us):
            raise InvalidMessage(f"day is {event.day}, which it was nowhere at version")
        return event


def _day(value: object, name: str) -> date:
    day = _DAY(value, name)
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise InvalidMessage(f"{name} is {day!r}, not a day, YYYY-MM-DD") from None


class Run(NamedTuple):
    """Days in a row, both included."""

    first: date
    last: date


class StoredCheckIns(NamedTuple):
    """What MySQL has: the newest runs, newest first, and the days of one month."""

    runs: Sequence[Run]
    days: Sequence[date]


@dataclass(frozen=True, slots=True)
class Month:
    """The check-ins of a user in a month. ``today`` is what day it is for them.

    ``days`` and ``streak`` are None when only MySQL will know. ``exact`` is false while Redis is
    away.
    """

    today: date
    first: date
    days: Sequence[int] | None
    streak: int | None
    exact: bool


def is_possible_day(day: date, at_us: int) -> bool:
    """True when it was ``day`` anywhere on Earth at that time, from UTC-12 to UTC+14."""
    at = datetime.fromtimestamp(at_us // 1_000_000, UTC)
    return (at + _EARLIEST).date() <= day <= (at + _LATEST).date()


def month_of(day: date) -> date:
    """The first of its month."""
    return day.replace(day=1)


def next_month(first: date) -> date:
    """The first of the month after."""
    return (first + timedelta(days=31)).replace(day=1)


def current_streak(today: date, last: date | None, streak: int) -> int:
    """How many days in a row somebody has, of whom ``streak`` end on ``last``.

    Today need not be among them yet; without yesterday it is over.
    """
    return streak if last is not None and last >= today - timedelta(days=1) else 0
