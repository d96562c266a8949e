"""What a check-in is: rules and facts. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from plaza.infra.errors import Unavailable
from plaza.infra.queues import BadRecord

MOST_ID = 2**63 - 1
FIRST_MONTH = date(2025, 1, 1)  # there was nothing before
_MOST_VER = 2**53
_EARLIEST, _LATEST = timedelta(hours=-12), timedelta(hours=14)  # of all the zones there are


class Undecided(Unavailable):
    """The check-ins of the user changed each time they were read."""


@dataclass(frozen=True, slots=True)
class CheckedIn:
    """A user checked in on ``day``, their own; ``ver_us`` is when, microseconds since 1970.

    There is no fact that takes it back: any order, and any number of times, comes to the same.
    ``request_id`` is an attribute of the message, not of its body: None where nobody knows it.
    """

    user_id: int
    day: date
    ver_us: int
    request_id: str | None = None

    def to_json(self) -> str:
        """The message on the queue."""
        said = {"user_id": self.user_id, "day": self.day.isoformat(), "ver": self.ver_us}
        return json.dumps(said, separators=(",", ":"))

    @classmethod
    def from_json(cls, body: str) -> CheckedIn:
        """The fact in a message. Raises BadRecord, also for a day that it was nowhere then."""
        try:
            said = json.loads(body)
            fact = cls(said["user_id"], date.fromisoformat(said["day"]), said["ver"])
            good = (
                set(said) == {"user_id", "day", "ver"}
                and type(fact.user_id) is type(fact.ver_us) is int
                and 0 < fact.user_id <= MOST_ID
                and 0 < fact.ver_us < _MOST_VER
                and was_somewhere(fact.day, fact.ver_us)
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadRecord(f"no check-in: {type(error).__name__} {error}") from None
        if not good:
            raise BadRecord("no check-in")
        return fact


class Run(NamedTuple):
    """Days in a row, both included."""

    first: date
    last: date


class Recorded(NamedTuple):
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


def was_somewhere(day: date, at_us: int) -> bool:
    """True when it was ``day`` anywhere on Earth at that time, from UTC-12 to UTC+14."""
    at = datetime.fromtimestamp(at_us // 1_000_000, UTC)
    return (at + _EARLIEST).date() <= day <= (at + _LATEST).date()


def month_of(day: date) -> date:
    """The first of its month."""
    return day.replace(day=1)


def next_month(first: date) -> date:
    """The first of the month after."""
    return (first + timedelta(days=31)).replace(day=1)


def streak_on(today: date, last: date | None, streak: int) -> int:
    """How many days in a row somebody has, of whom ``streak`` end on ``last``.

    Today need not be among them yet; without yesterday it is over.
    """
    return streak if last is not None and last >= today - timedelta(days=1) else 0
