"""States and answers that the requests of one reaction allow."""

from __future__ import annotations

import pytest

from tests.chaos.ledger import Ledger, Request, find_violations

ON, OFF = True, False


def alone(*requests: tuple[bool, int]) -> Ledger:
    """Return the ledger of one client that waits for each answer: (state, status)."""
    ledger = Ledger()
    for at_s, (on, status) in enumerate(requests):
        ledger.add(Request(at_s, at_s + 0.5, on, status))
    return ledger


@pytest.mark.parametrize(
    ("requests", "allowed"),
    [
        ([], {OFF}),
        ([(ON, 200)], {ON}),
        ([(ON, 200), (OFF, 200)], {OFF}),
        ([(ON, 202), (OFF, 200)], {OFF}),
        ([(ON, 503), (OFF, 200)], {OFF}),
        ([(ON, 200), (OFF, 202)], {OFF}),
        ([(ON, 503)], {ON, OFF}),
        ([(ON, 200), (OFF, 503)], {ON, OFF}),
        ([(OFF, 503), (ON, 202)], {ON, OFF}),
        ([(ON, 200), (OFF, 503), (ON, 200)], {ON}),
        ([(ON, 0), (OFF, 200)], {ON, OFF}),
    ],
)
def test_last_answered_state_counts(requests: list[tuple[bool, int]], allowed: set[bool]) -> None:
    assert alone(*requests).find_allowed() == allowed


def test_concurrent_requests_may_be_executed_in_either_order() -> None:
    ledger = alone((ON, 200))
    ledger.add_both(Request(2, 3, ON, 200), Request(2, 4, OFF, 200))
    assert ledger.find_allowed() == {ON, OFF}
    assert ledger.known is None
    ledger.add_both(Request(5, 6, OFF, 200), Request(5, 6, OFF, 202))
    assert ledger.find_allowed() == {OFF}


def test_answer_that_contradicts_earlier_answers_is_wrong() -> None:
    ledger = alone((ON, 200))
    ledger.add(Request(2, 3, OFF, 200, changed=False))
    assert len(ledger.wrong) == 1
    assert "off after on is answered changed: false" in ledger.wrong[0]
    ledger.add(Request(4, 5, OFF, 200, changed=False))
    assert len(ledger.wrong) == 1


def test_states_are_open_after_redis_lost_its_data() -> None:
    losses: list[float] = []
    ledger = Ledger(losses)
    ledger.add(Request(0, 1, ON, 200, changed=True))
    losses.append(0.5)
    ledger.observe(False)
    ledger.add(Request(2, 3, ON, 200, changed=True))
    assert ledger.wrong == []
    ledger.observe(False)
    assert len(ledger.wrong) == 1
    assert ledger.find_allowed() == {ON}


def test_first_request_is_a_change() -> None:
    ledger = Ledger()
    ledger.add(Request(0, 1, ON, 200, changed=False))
    assert len(ledger.wrong) == 1


@pytest.mark.parametrize("status", [202, 503, 0])
def test_any_answer_may_follow_one_that_is_not_final(status: int) -> None:
    ledger = alone((ON, 200), (OFF, status))
    ledger.observe(True)
    ledger.observe(False)
    ledger.add(Request(5, 6, OFF, 200, changed=False))
    assert ledger.wrong == []


def test_unanswered_request_may_be_executed_at_any_time() -> None:
    ledger = alone((ON, 0), (ON, 200))
    ledger.observe(False)
    assert ledger.wrong == []


def test_state_other_than_the_last_answered_one_is_wrong() -> None:
    ledger = alone((ON, 200))
    ledger.observe(True)
    assert ledger.wrong == []
    ledger.observe(False)
    assert len(ledger.wrong) == 1


@pytest.mark.parametrize(
    ("row", "seen", "broken"),
    [(ON, ON, 0), (OFF, OFF, 1), (ON, OFF, 1), (OFF, ON, 2)],
)
def test_row_and_api_are_compared_with_the_last_answer(row: bool, seen: bool, broken: int) -> None:
    assert len(find_violations(alone((ON, 200)), row, seen)) == broken


def test_row_and_api_must_agree_when_both_states_are_allowed() -> None:
    ledger = alone((ON, 503))
    assert find_violations(ledger, ON, ON) == find_violations(ledger, OFF, OFF) == []
    assert len(find_violations(ledger, OFF, ON)) == 1
