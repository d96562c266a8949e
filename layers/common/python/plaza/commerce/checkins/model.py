"""Check-ins: rules and events. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

from plaza.infra.queues.messages import InvalidMessage, message_codec
from plaza.infra.runtime.codec import ID, VERSION, Struct
from plaza.infra.runtime.errors import Unavailable

if TYPE_CHECKING:
    from plaza.people.users import Zone

FIRST_MONTH = date(2025, 1, 1)  # no check-in is older
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


class _CheckInBody(Struct, frozen=True):
    user_id: ID
    day: date
    version: VERSION


def _pack(event: CheckInEvent) -> _CheckInBody:
    return _CheckInBody(event.user_id, event.day, event.version_us)


def _unpack(body: _CheckInBody) -> CheckInEvent:
    if not is_possible_day(body.day, body.version):
        raise InvalidMessage(
            f"day is {body.day}, which was not the date in any time zone at version"
        )
    return CheckInEvent(body.user_id, body.day, body.version)


EVENTS = message_codec("checkins", _CheckInBody, _unpack, _pack)


class DayRange(NamedTuple):
    """Consecutive days, from ``first`` to ``last`` inclusive."""

    first: date
    last: date


class StoredCheckIns(NamedTuple):
    """The newest ranges in MySQL, newest first, and the days of one month."""

    ranges: Sequence[DayRange]
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
    """Return the first day of the month after the month of ``first``."""
    return (first + timedelta(days=31)).replace(day=1)


def current_streak(today: date, last: date | None, streak: int, zone: Zone) -> int:
    """Return the streak as of ``today``: 0 unless ``last`` is today or yesterday, or all days
    between are excused."""
    if last is None:
        return 0
    goes_on = last >= today - timedelta(days=1) or zone.excused_after(last, today)
    return streak if goes_on else 0


def accepted_us(day: date, now_us: int) -> int:
    """Return when an excused ``day`` counts as accepted: now, or the last moment at which it was
    the date anywhere, which is what an event of it may have."""
    end = datetime.combine(day + timedelta(days=1), time(), UTC) - _EARLIEST
    return min(now_us, int(end.timestamp()) * 1_000_000 - 1)
