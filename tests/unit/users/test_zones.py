"""Which day it is for somebody, wherever they are and wherever they say they are."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from plaza.users import Zone
from plaza.users.schemas import ProfileUpdateRequest
from plaza.users.zones import _names, check_zone


def at(text: str) -> float:
    return datetime.fromisoformat(f"{text}+00:00").timestamp()


@pytest.mark.parametrize(
    ("zone", "now", "day"),
    [
        ("UTC", "2026-12-31T23:59:59", "2026-12-31"),
        ("UTC", "2027-01-01T00:00:00", "2027-01-01"),
        ("Asia/Shanghai", "2026-11-20T15:59:59", "2026-11-20"),
        ("Asia/Shanghai", "2026-11-20T16:00:00", "2026-11-21"),
        ("Pacific/Kiritimati", "2026-12-31T10:00:00", "2027-01-01"),
        ("Pacific/Kiritimati", "2026-12-31T09:59:59", "2026-12-31"),
        ("Etc/GMT+12", "2027-01-01T11:59:59", "2026-12-31"),
        ("Etc/GMT+12", "2027-01-01T12:00:00", "2027-01-01"),
        ("Asia/Kathmandu", "2026-03-31T18:14:59", "2026-03-31"),
        ("Asia/Kathmandu", "2026-03-31T18:15:00", "2026-04-01"),
        # Clocks go forward in the night to the 29th of March 2026, back in that to the 25th of
        # October: the day begins at 23:00 UTC before and at 22:00 UTC between.
        ("Europe/Berlin", "2026-03-28T22:59:59", "2026-03-28"),
        ("Europe/Berlin", "2026-03-28T23:00:00", "2026-03-29"),
        ("Europe/Berlin", "2026-03-29T21:59:59", "2026-03-29"),
        ("Europe/Berlin", "2026-03-29T22:00:00", "2026-03-30"),
        ("Europe/Berlin", "2026-10-25T22:59:59", "2026-10-25"),
        ("Europe/Berlin", "2026-10-25T23:00:00", "2026-10-26"),
        # The day of 2026-09-06 begins at one o'clock in Santiago: there is no midnight.
        ("America/Santiago", "2026-09-06T03:59:59", "2026-09-05"),
        ("America/Santiago", "2026-09-06T04:00:00", "2026-09-06"),
    ],
)
def test_it_is_the_day_of_the_calendar_there(zone: str, now: str, day: str) -> None:
    assert Zone(zone).day_at(at(now)) == date.fromisoformat(day)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_through_a_year_of_a_zone_no_day_comes_twice_or_is_left_out(zone: str) -> None:
    days = [Zone(zone).day_at(at("2026-01-01T12:00") + hour * 3600) for hour in range(366 * 24)]
    assert days == sorted(days)
    assert {b - a for a, b in pairwise(days)} == {
        timedelta(0),
        timedelta(days=1),
    }


def test_no_zone_is_before_utc_minus_12_or_after_utc_plus_14() -> None:
    for month in range(1, 13):
        now = datetime(2026, month, 15, 11, tzinfo=UTC)
        for name in _names():
            offset = now.astimezone(ZoneInfo(name)).utcoffset()
            assert offset is not None
            assert timedelta(hours=-12) <= offset <= timedelta(hours=14), name


def test_a_day_that_has_begun_lasts_until_it_is_the_same_in_the_new_zone() -> None:
    west = Zone("Etc/GMT+12", latest_day=date(2026, 11, 21))
    assert west.day_at(at("2026-11-21T09:00")) == date(2026, 11, 21), "there it is the 20th"
    assert west.day_at(at("2026-11-22T11:59")) == date(2026, 11, 21)
    assert west.day_at(at("2026-11-22T12:00")) == date(2026, 11, 22)


def test_a_zone_comes_back_from_redis_as_it_went() -> None:
    for zone in (Zone(), Zone("America/Argentina/Buenos_Aires", date(2026, 1, 1))):
        assert Zone.from_text(zone.to_text()) == zone


@pytest.mark.parametrize("name", ["UTC", "Asia/Shanghai", "America/Port-au-Prince", "Etc/GMT+12"])
def test_a_name_of_the_database_is_taken(name: str) -> None:
    assert check_zone(name) == name
    assert ZoneInfo(name).key == name
    assert ProfileUpdateRequest.model_validate({"time_zone": name}).changes == {"time_zone": name}


@pytest.mark.parametrize(
    "name",
    [
        *("", "utc", "Mars/Base", "+08:00", "UTC+8", "../../etc/passwd", "Europe", "localtime"),
        *("zones", "Europe/Berlin ", "Europe/Berlin\n", "x" * 65, None, 8),
    ],
)
def test_what_is_no_zone_is_refused(name: object) -> None:
    with pytest.raises(ValidationError) as refusal:
        ProfileUpdateRequest.model_validate({"time_zone": name})
    assert [error["loc"] for error in refusal.value.errors()] == [("time_zone",)]
