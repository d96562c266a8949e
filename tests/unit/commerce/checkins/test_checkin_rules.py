"""The rules of check-ins and streaks."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from plaza.commerce.checkins import CheckInEvent
from plaza.commerce.checkins.model import (
    accepted_us,
    current_streak,
    is_possible_day,
    month_of,
    next_month,
)
from plaza.commerce.checkins.queues import CHECKINS
from plaza.infra.queues.messages import InvalidMessage
from plaza.people.users import Zone

TODAY = date(2026, 11, 21)
NOON_US = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()) * 1_000_000
GOOD = {"user_id": 7, "day": "2026-11-21", "version": NOON_US}


def test_an_event_survives_serialization() -> None:
    event = CheckInEvent(7, TODAY, NOON_US)
    assert CHECKINS.decode(CHECKINS.encode(event)) == event
    assert json.loads(CHECKINS.encode(event)) == GOOD


@pytest.mark.parametrize(
    "change",
    [
        {"user_id": "7"},
        {"user_id": 0},
        {"user_id": True},
        {"user_id": 2**63},
        {"day": 20261121},
        {"day": "2026-11-31"},
        {"day": "yesterday"},
        {"day": None},
        {"version": -1},
        {"version": 1.5},
        {"version": 2**53},
    ],
)
def test_an_invalid_field_is_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        CHECKINS.decode(json.dumps(GOOD | change))


def test_a_field_that_a_later_version_adds_is_ignored() -> None:
    assert CHECKINS.decode(json.dumps(GOOD | {"place": 1})) == CheckInEvent(7, TODAY, NOON_US)


@pytest.mark.parametrize("body", ["", "[]", "7", "null", "{}", "[" * 100_000])
def test_a_body_that_is_no_event_is_rejected(body: str) -> None:
    with pytest.raises(InvalidMessage):
        CHECKINS.decode(body)


@pytest.mark.parametrize(
    ("at", "days"),
    [
        ("2026-11-21T09:59", ["20", "21"]),
        ("2026-11-21T10:00", ["20", "21", "22"]),
        ("2026-11-21T11:59", ["20", "21", "22"]),
        ("2026-11-21T12:00", ["21", "22"]),
        ("2026-11-21T23:59", ["21", "22"]),
    ],
)
def test_only_a_day_that_is_the_date_somewhere_is_possible(at: str, days: list[str]) -> None:
    at_us = int(datetime.fromisoformat(f"{at}+00:00").timestamp()) * 1_000_000
    results = [f"{d}" for d in range(18, 26) if is_possible_day(date(2026, 11, d), at_us)]
    assert results == days
    for day in ("2026-11-18", "2026-11-25"):
        with pytest.raises(InvalidMessage):
            CHECKINS.decode(json.dumps(GOOD | {"day": day, "version": at_us}))


def test_a_streak_without_today_ends_after_today() -> None:
    assert current_streak(TODAY, TODAY, 3, Zone()) == 3
    assert current_streak(TODAY, TODAY - timedelta(days=1), 3, Zone()) == 3
    assert current_streak(TODAY, TODAY - timedelta(days=2), 3, Zone()) == 0
    assert current_streak(TODAY, None, 0, Zone()) == 0


def test_a_streak_without_today_goes_on_over_excused_days() -> None:
    yesterday, two_ago, three_ago = (TODAY - timedelta(days=n) for n in (1, 2, 3))
    assert current_streak(TODAY, two_ago, 3, Zone("UTC", None, (yesterday, yesterday))) == 3
    assert current_streak(TODAY, three_ago, 3, Zone("UTC", None, (two_ago, yesterday))) == 3
    assert current_streak(TODAY, three_ago, 3, Zone("UTC", None, (yesterday, yesterday))) == 0
    assert current_streak(TODAY, three_ago, 3, Zone("UTC", None, (two_ago, two_ago))) == 0


@pytest.mark.parametrize("hour", range(26))
def test_an_excused_day_was_the_date_somewhere_when_it_counts_as_accepted(hour: int) -> None:
    """Given the first day in the easternmost and the westernmost zone, at any hour."""
    begin = datetime(2026, 11, 20, 10, tzinfo=UTC)  # of the 21st, at UTC+14
    now_us = int((begin + timedelta(hours=2 * hour)).timestamp()) * 1_000_000
    for day in (date(2026, 11, 19), date(2026, 11, 20)):
        at_us = accepted_us(day, now_us)
        assert at_us <= now_us
        assert is_possible_day(day, at_us)


@pytest.mark.parametrize(
    ("day", "first", "after"),
    [
        ("2026-11-21", "2026-11-01", "2026-12-01"),
        ("2026-12-31", "2026-12-01", "2027-01-01"),
        ("2026-01-31", "2026-01-01", "2026-02-01"),
        ("2028-02-29", "2028-02-01", "2028-03-01"),
    ],
)
def test_months_have_a_first_day_and_a_next_month(day: str, first: str, after: str) -> None:
    assert month_of(date.fromisoformat(day)) == date.fromisoformat(first)
    assert next_month(date.fromisoformat(first)) == date.fromisoformat(after)
