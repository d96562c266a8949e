"""Time zones and the date in them. No I/O but the time zone database and records."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from importlib import resources
from typing import NamedTuple

from plaza.infra.runtime.observability import record_unknown

DEFAULT = "UTC"
_DAY = timedelta(days=1)


class Zone(NamedTuple):
    """An IANA time zone name, and the latest date that the user had in an earlier time zone.

    The date of a user never goes back: after a move to the west it stays until the date in the new
    zone catches up. So no date occurs twice, and a missed one does not return.

    A move to the east ends a date early, and over the date line it skips one. These dates,
    ``excused`` from the first to the last, are not missed: who checks in on the first date in the
    new zone keeps the streak.
    """

    name: str = DEFAULT
    latest_day: date | None = None
    excused: tuple[date, date] | None = None

    def day_at(self, now_s: float) -> date:
        """Return the user's date at ``now_s``, seconds since 1970."""
        today = datetime.fromtimestamp(now_s, UTC).astimezone(_load(self.name)).date()
        return today if self.latest_day is None else max(today, self.latest_day)

    def move_to(self, name: str, now_s: float) -> Zone:
        """Return the zone after a change of its name at ``now_s``."""
        before = self.day_at(now_s)
        moved = Zone(name, before, self.excused)
        after = moved.day_at(now_s)
        return moved._replace(excused=(before, after - _DAY)) if after > before else moved

    def excused_after(self, last: date | None, today: date) -> list[date]:
        """Return the excused dates between the last check-in and ``today``, if these are all that
        the user lacks; else none."""
        if last is None or self.excused is None:
            return []
        first, until = self.excused
        if today != until + _DAY or not first - _DAY <= last < until:
            return []
        return [last + _DAY * n for n in range(1, (today - last).days)]


def _load(name: str) -> tzinfo:
    """Return a zone of the database, UTC for a name that only another version of it has: without
    it no user could check in or choose another zone."""
    from zoneinfo import ZoneInfo  # late: 4 ms, which most functions never need

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        record_unknown("time_zone", name)
        return UTC


def check_zone(name: str) -> str:
    """Return ``name``. Raises ValueError unless it is in the IANA time zone database."""
    if name not in _names():
        raise ValueError("must be an IANA time zone, such as Europe/Berlin")
    return name


@cache
def _names() -> frozenset[str]:
    # available_timezones() opens every file of the system's database, which takes 300 ms.
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split())
