"""Time zones: which day it is for somebody. No I/O but the database of zones."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

DEFAULT = "UTC"


class Zone(NamedTuple):
    """Where somebody is: an IANA name, and the latest day that they have had anywhere before.

    A day that has begun for somebody does not end before the next one begins: who moves west, or
    says so, stays in it until the day there is the same. So no day comes twice, and none is given
    back to who missed it.
    """

    name: str = DEFAULT
    latest_day: date | None = None

    def day_at(self, now_s: float) -> date:
        """The day it is for them at ``now_s``, seconds since 1970."""
        there = datetime.fromtimestamp(now_s, UTC).astimezone(ZoneInfo(self.name)).date()
        return there if self.latest_day is None else max(there, self.latest_day)

    def to_text(self) -> str:
        """As it stands in Redis."""
        return f"{self.name} {self.latest_day or ''}"

    @classmethod
    def from_text(cls, text: str) -> Zone:
        """What ``to_text`` wrote."""
        name, _, day = text.partition(" ")
        return cls(name, date.fromisoformat(day) if day else None)


def check_zone(name: str) -> str:
    """``name``, which is one of the IANA time zone database. Raises ValueError."""
    if name not in _names():
        raise ValueError("there is no time zone of that name; one is Europe/Berlin")
    return name


@cache
def _names() -> frozenset[str]:
    # available_timezones() looks into each file of the system's database: 300 ms.
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split())
