"""The clock and deadlines."""

from __future__ import annotations

import math

import pytest

from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline


def test_the_time_is_the_same_in_all_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_us", lambda: 1_700_000_000_123_999)
    assert clock.now_ms() == 1_700_000_000_123
    assert clock.now_s() == pytest.approx(1_700_000_000.123999, abs=1e-6)


def test_seconds_keep_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds are a float, which is exact to microseconds until 2255."""
    for now_us in (1_700_000_000_000_001, 1_999_999_999_999_999, 4_102_444_800_000_001):
        monkeypatch.setattr(clock, "now_us", lambda now_us=now_us: now_us)
        assert round(clock.now_s() * 1e6) == now_us


def test_a_deadline_has_passed_at_its_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s[0])
    deadline = Deadline.in_s(2)
    assert (deadline.has_passed, deadline.left_s) == (False, 2)
    now_s[0] = 101.5
    assert (deadline.has_passed, deadline.left_s) == (False, 0.5)
    now_s[0] = 102
    assert (deadline.has_passed, deadline.left_s) == (True, 0)
    now_s[0] = 200
    assert (deadline.has_passed, deadline.left_s) == (True, 0)


@pytest.mark.parametrize("duration_s", [0, -1, -math.inf])
def test_a_deadline_of_no_seconds_has_passed_at_once(duration_s: float) -> None:
    assert Deadline.in_s(duration_s).has_passed


def test_an_infinite_deadline_never_passes() -> None:
    deadline = Deadline.in_s(math.inf)
    assert not deadline.has_passed
    assert deadline.left_s == math.inf


def test_sleep_takes_its_duration() -> None:
    began_s = clock.monotonic_s()
    clock.sleep(0.01)
    assert clock.monotonic_s() - began_s >= 0.01
