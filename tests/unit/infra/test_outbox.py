"""The sweep of outboxes: its end and its result."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from plaza.infra import outbox
from plaza.infra.clock import Deadline
from plaza.infra.outbox import SweepResult

HOUR_US = 3_600_000_000


def sweep(
    due: Sequence[Sequence[str]],
    accepted_us: int = 0,
    max_entries: int = 1_000,
    max_s: float = 60,
) -> SweepResult:
    """Sweep outboxes that are due in these rounds, each with an entry accepted at one time."""
    rounds = iter([*due, []])

    def send_again(
        members: Sequence[str], grace_us: int, deadline: Deadline
    ) -> tuple[int, list[int]]:
        return len(members), [accepted_us] * len(members)

    return outbox.sweep(lambda before_us: next(rounds), send_again, 0, max_entries, max_s)


def test_a_sweep_continues_until_nothing_is_due() -> None:
    assert sweep([["a", "b"], ["c"]])[:2] == (3, 3)


def test_a_sweep_ends_after_max_entries() -> None:
    assert sweep([["a", "b"], ["c"], ["d"]], max_entries=3)[:2] == (3, 3)


def test_a_sweep_ends_after_max_s() -> None:
    assert sweep([["a"]], max_s=0)[:2] == (0, 0)


def test_a_sweep_returns_the_age_of_the_oldest_entry() -> None:
    an_hour_ago_us = time.time_ns() // 1000 - HOUR_US
    assert sweep([["a"]], an_hour_ago_us).age_s == pytest.approx(3_600, abs=5)


def test_the_age_is_that_of_all_rounds() -> None:
    now_us = time.time_ns() // 1000
    rounds = iter([["a"], ["b"], []])
    times_us = iter([now_us - HOUR_US, now_us])
    swept = outbox.sweep(lambda _: next(rounds), lambda *_: (1, [next(times_us)]), 0, 10, 60)
    assert swept.age_s == pytest.approx(3_600, abs=60)


def test_the_age_without_due_entries_is_0() -> None:
    assert sweep([]).age_s == pytest.approx(0, abs=1)


def test_a_sweep_finds_entries_older_than_the_grace() -> None:
    times_us: list[int] = []

    def find(before_us: int) -> list[str]:
        times_us.append(before_us)
        return []

    outbox.sweep(find, lambda members, grace_us, deadline: (0, []), HOUR_US, 1, 60)
    [before_us] = times_us
    assert time.time_ns() // 1000 - before_us == pytest.approx(HOUR_US, abs=5_000_000)
