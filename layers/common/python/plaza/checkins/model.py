"""Check-ins: rules and events. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from plaza.infra import messages
from plaza.infra.errors import Unavailable
from plaza.infra.messages import ID, InvalidMessage, integer, read, text

FIRST_MONTH = date(2025, 1, 1)  # no check-in is older
_FIELDS = ("user_id", "day", "version")
_DAY = text(10, 10)
_VERSION = integer(1, messages.MAX_VERSION)
_EARLIEST, _LATEST = timedelta(hours=-12), timedelta(hours=14)  # UTC offsets


class CheckInsKeepChanging(Unavailable):
    """The check-ins of the user changed on every attempt."""


@dataclass(frozen=True, slots=True)
class CheckInEvent:
    """A user checked in on ``day``, in the user's time zone, at ``version_us`` since 1970.

    No event reverts it, so events may arrive in any order and repeatedly. ``request_id`` is an
    attribute of the message, not part of its body; None if it is unknown.
    """

    user_id: int
    day: date
    version_us: int
    request_id: str | None = None

    def to_json(self) -> str:
        return messages.encode(
            {"user_id": self.user_id, "day": self.day.isoformat(), "version": self.version_us}
        )

    @classmethod
    def from_json(cls, body: str) -> CheckInEvent:
        """Parse a body. Raises InvalidMessage, also for a day that was no date on Earth then."""
        fields = messages.read_object(body)
        event = cls(
            read(fields, "user_id", ID),
            read(fields, "day", _day),
            read(fields, "version", _VERSION),
        )
        if len(fields) > len(_FIELDS):  # an unknown field may change the meaning
            raise InvalidMessage(f"fields are {len(fields)}, not {', '.join(_FIELDS)}")
        if not is_possible_day(event.day, event.version_us):
            raise InvalidMessage(
                f"day is {event.day}, which was not the date in any time zone at version"
            )
        return event


def _day(value: object, name: str) -> date:
    day = _DAY(value, name)
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise InvalidMessage(f"{name} is {day!r}, not a day, YYYY-MM-DD") from None


class Run(NamedTuple):
    """Consecutive days, from ``first`` to ``last`` inclusive."""

    first: date
    last: date


class StoredCheckIns(NamedTuple):
    """The newest runs in MySQL, newest first, and the days of one month."""

    runs: Sequence[Run]
    days: Sequence[date]


@dataclass(frozen=True, slots=True)
class Month:
    """The check-ins of a user in a month. ``today`` is the date in the user's time zone.

    ``days`` and ``streak`` are None for a provisional check-in. ``exact`` is false while Redis is
    unavailable.
    """

    today: date
    first: date
    days: Sequence[int] | None
    streak: int | None
    exact: bool


def is_possible_day(day: date, at_us: int) -> bool:
    """Return whether ``day`` was the date anywhere at ``at_us``, from UTC-12 to UTC+14."""
    at = datetime.fromtimestamp(at_us // 1_000_000, UTC)
    return (at + _EARLIEST).date() <= day <= (at + _LATEST).date()


def month_of(day: date) -> date:
    return day.replace(day=1)


def next_month(first: date) -> date:
    """Return the first day of the month after that of ``first``."""
    return (first + timedelta(days=31)).replace(day=1)


def current_streak(today: date, last: date | None, streak: int) -> int:
    """Return the streak as of ``today``: 0 unless ``last`` is today or yesterday."""
    return streak if last is not None and last >= today - timedelta(days=1) else 0
