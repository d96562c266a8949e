"""Time zones and the date in them. No I/O but the time zone database."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

DEFAULT = "UTC"


class Zone(NamedTuple):
    """An IANA time zone name, and the latest date that the user had in an earlier time zone.

    The date of a user never goes back: after a move to the west it stays until the date in the new
    zone catches up. So no date occurs twice, and a missed one does not return.
    """

    name: str = DEFAULT
    latest_day: date | None = None

    def day_at(self, now_s: float) -> date:
        """Return the user's date at ``now_s``, seconds since 1970."""
        today = datetime.fromtimestamp(now_s, UTC).astimezone(ZoneInfo(self.name)).date()
        return today if self.latest_day is None else max(today, self.latest_day)


def check_zone(name: str) -> str:
    """Return ``name``. Raises ValueError unless it is in the IANA time zone database."""
    if name not in _names():
        raise ValueError("must be an IANA time zone, such as Europe/Berlin")
    return name


@cache
def _names() -> frozenset[str]:
    # available_timezones() opens every file of the system's database, which takes 300 ms.
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split())
