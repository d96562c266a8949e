"""Screens of the harness: what they show, when they poll, and what a report finds wrong."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from local.load.crowd import Answer
from local.load.screens import (
    MAX_FACTOR,
    Known,
    Phase,
    Reading,
    Screen,
    ScreensReport,
    is_newer,
    read_answer,
)

POST = 7


def reading(total: int, at: str | None = None) -> Reading:
    return Reading(200, {POST: Known(total, at)}, max_age_s=5)


def test_a_screen_shows_the_total_with_the_highest_token_in_any_order() -> None:
    dice = random.Random(5)
    sent = [reading(n, None if n % 5 == 0 else f"1{n:03}") for n in range(40)] * 2
    for _ in range(50):
        dice.shuffle(sent)
        screen, shown = Screen(0), [Known(-1, None)]
        for item in sent:
            screen.take(item)
            shown.append(screen.shown[POST])
        tokens = [known.at or "" for known in shown]
        assert all(before <= after for before, after in pairwise(tokens))
        assert shown[-1] == (39, "1039")


@pytest.mark.parametrize(
    ("after", "before", "newer"),
    [
        (Known(1, None), None, True),
        (Known(2, None), Known(1, None), True),
        (Known(1, None), Known(1, None), False),
        (Known(2, None), Known(1, "1a"), False),
        (Known(2, "1a"), Known(1, None), True),
        (Known(2, "1a"), Known(1, "1a"), False),
        (Known(2, "1_"), Known(1, "1Z"), True),  # by code units
    ],
)
def test_the_rule_of_clients(after: Known, before: Known | None, newer: bool) -> None:
    assert is_newer(after, before) is newer


def test_a_total_that_falls_is_noticed() -> None:
    screen = Screen(0)
    assert [screen.take(item) for item in (reading(3, "1b"), reading(2, "1a"))] == [False, False]
    assert screen.take(reading(2, "1c"))


def test_a_screen_at_rest_polls_more_slowly_and_an_active_one_at_the_interval() -> None:
    screen, delays = Screen(0), []
    for item in [reading(1, "1a")] * 6 + [reading(2, "1b")]:
        screen.take(item)
        delays.append(screen.draw_delay_s(item))
    assert delays[0] == delays[-1] == 5
    assert delays == [*sorted(delays[:-1]), 5]
    assert delays[-2] == MAX_FACTOR * 5


def test_a_refused_screen_keeps_what_it_shows_and_waits() -> None:
    screen, refused = Screen(0), Reading(503, None, retry_after_s=2)
    screen.take(reading(1, "1a"))
    for bound_s in (5, 10, 20, 40, 60, 60):
        assert not screen.take(refused)
        assert 2 <= screen.draw_delay_s(refused) <= 2 + bound_s
    assert screen.shown[POST].total == 1


def test_an_answer_is_read_with_its_ages() -> None:
    body = {"items": [{"id": "7", "likes": 3, "likes_at": "1a"}]}
    headers = {"cache-control": "public, max-age=5, s-maxage=1"}
    assert read_answer(Answer(200, body, headers)) == Reading(200, {7: Known(3, "1a")}, 5, 1)
    refused = read_answer(Answer(503, {}, {"retry-after": "4"}))
    assert (refused.totals, refused.retry_after_s) == (None, 4)


def settled(name: str, **values: object) -> Phase:
    phase = Phase(name, settled_s=1.0, polls_per_s=100.0)
    phase.likes[200] = 1
    for key, value in values.items():
        setattr(phase, key, value)
    return phase


@pytest.mark.parametrize(
    ("phase", "problem"),
    [
        (settled("calm"), ""),
        (settled("calm", fell={3}), "calm: 1 screens went back"),
        (settled("FLUSHALL", fell={3}, loses=True), ""),
        (settled("calm", unequal=2), "calm: 2 tokens had two totals"),
        (settled("calm", settled_s=None), "calm: not settled after 30 s"),
        (settled("calm", polls_per_s=241.0), "calm: 241.0 polls a second"),
        (settled("calm", likes={200: 0}), "calm: no like passed"),
    ],
)
def test_a_report_finds_what_breaks_the_guarantee(phase: Phase, problem: str) -> None:
    report = ScreensReport(1_000, 5, [phase], signed_in=True)
    assert list(report.find_problems()) == [problem] * bool(problem)


def test_a_report_finds_polls_at_rest_and_a_sign_in_that_failed() -> None:
    report = ScreensReport(1_000, 5, [settled("calm")], resting_per_s=49.0)
    assert list(report.find_problems()) == [
        "49.0 polls a second at rest",
        "a sign-in beside the screens failed",
    ]
