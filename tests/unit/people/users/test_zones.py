"""The date of a user in and between time zones."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from plaza.people.users import Zone
from plaza.people.users.redis_store import ZONE
from plaza.people.users.schemas import ProfileUpdateRequest
from plaza.people.users.zones import _names, check_zone


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
        # Daylight saving time lasts from 29 March to 25 October 2026: the day begins at 22:00 UTC
        # during it and at 23:00 UTC otherwise.
        ("Europe/Berlin", "2026-03-28T22:59:59", "2026-03-28"),
        ("Europe/Berlin", "2026-03-28T23:00:00", "2026-03-29"),
        ("Europe/Berlin", "2026-03-29T21:59:59", "2026-03-29"),
        ("Europe/Berlin", "2026-03-29T22:00:00", "2026-03-30"),
        ("Europe/Berlin", "2026-10-25T22:59:59", "2026-10-25"),
        ("Europe/Berlin", "2026-10-25T23:00:00", "2026-10-26"),
        # In Santiago 2026-09-06 begins at 01:00, as the clock skips midnight.
        ("America/Santiago", "2026-09-06T03:59:59", "2026-09-05"),
        ("America/Santiago", "2026-09-06T04:00:00", "2026-09-06"),
    ],
)
def test_the_date_is_that_of_the_zone(zone: str, now: str, day: str) -> None:
    assert Zone(zone).day_at(at(now)) == date.fromisoformat(day)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_in_a_year_of_a_zone_no_date_is_repeated_or_skipped(zone: str) -> None:
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


def test_after_a_move_west_the_date_stays_until_the_new_zone_catches_up() -> None:
    west = Zone("Etc/GMT+12", latest_day=date(2026, 11, 21))
    assert west.day_at(at("2026-11-21T09:00")) == date(2026, 11, 21), "the new zone has the 20th"
    assert west.day_at(at("2026-11-22T11:59")) == date(2026, 11, 21)
    assert west.day_at(at("2026-11-22T12:00")) == date(2026, 11, 22)


@pytest.mark.parametrize(
    ("before", "now", "name", "excused"),
    [
        # Pago Pago has the 20th, 23:30, and Kiritimati the 22nd, 00:30.
        ("Pacific/Pago_Pago", "2026-11-21T10:30", "Pacific/Kiritimati", ("20", "21")),
        ("America/Los_Angeles", "2026-11-21T18:30", "Asia/Tokyo", ("21", "21")),
        ("Asia/Tokyo", "2026-11-21T18:30", "America/Los_Angeles", None),
        ("Europe/Berlin", "2026-11-21T12:00", "Asia/Shanghai", None),
    ],
)
def test_a_move_to_the_east_excuses_the_days_that_it_takes(
    before: str, now: str, name: str, excused: tuple[str, str] | None
) -> None:
    moved = Zone(before).move_to(name, at(now))
    days = excused and tuple(date.fromisoformat(f"2026-11-{day}") for day in excused)
    assert (moved.name, moved.excused) == (name, days)
    again = moved.move_to("Etc/GMT-9", at(now) + 60)
    assert again.excused == days or days is None, "kept by a move that takes no day"


@pytest.mark.parametrize("name", ["US/Pacific-New", "Mars/Base", "Europe", "../x", "", "a\0b"])
def test_an_unknown_zone_reads_as_utc_and_is_recorded(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a name that only the time zone database of another version has."""
    zone = Zone(name, date(2026, 11, 20))
    assert zone.day_at(at("2026-11-21T00:00")) == date(2026, 11, 21)
    assert zone.day_at(at("2026-11-19T23:59")) == date(2026, 11, 20)
    assert '"event":"unknown_name_read"' in capsys.readouterr().out
    assert zone.move_to("Europe/Berlin", at("2026-11-21T12:00")).name == "Europe/Berlin"


def test_a_zone_survives_serialization() -> None:
    excused = (date(2025, 12, 31), date(2026, 1, 1))
    for zone in (
        Zone(),
        Zone("Asia/Tokyo", date(2026, 1, 1), excused),
        Zone("America/Argentina/Buenos_Aires", date(2026, 1, 1)),
    ):
        assert ZONE.decode(ZONE.encode(zone)) == zone


@pytest.mark.parametrize("name", ["UTC", "Asia/Shanghai", "America/Port-au-Prince", "Etc/GMT+12"])
def test_an_iana_name_is_accepted(name: str) -> None:
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
def test_an_invalid_zone_is_rejected(name: object) -> None:
    with pytest.raises(ValidationError) as refusal:
        ProfileUpdateRequest.model_validate({"time_zone": name})
    assert [error["loc"] for error in refusal.value.errors()] == [("time_zone",)]
