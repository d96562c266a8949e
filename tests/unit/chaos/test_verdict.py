"""A cell is what its fault did: what came in between, and nothing else, is held against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.chaos.expectations import EXPECTED, FAULTS, NOT_TESTED, OPERATIONS
from tests.chaos.traffic import Operation, Reply, Sample, label_of
from tests.chaos.verdict import Cell, judge

BEGAN_S, ENDED_S, UNDONE_S = 10.0, 18.0, 19.0


class Like(Operation):
    name = "like"

    def check(self, rows: Callable[..., Sequence[tuple[Any, ...]]]) -> tuple[int, list[str]]:
        return 0, []


def at(at_s: float, label: str, took_s: float = 0.1) -> Sample:
    return Sample(at_s, took_s, label)


GOOD = (at(9, "200"), at(11, "202 inexact", 1.5), at(14, "202 inexact"), at(20, "200"))


def judged(*samples: Sample, lost: Sequence[str] = ()) -> Cell:
    return judge("redis down", Like(), samples, BEGAN_S, ENDED_S, UNDONE_S, 7, lost)


def test_what_is_as_expected_has_no_problems() -> None:
    cell = judged(*GOOD)
    assert cell.problems == []
    assert cell.labels == {"202 inexact": 2}
    assert (cell.slowest_s, cell.baseline_s, cell.promised, cell.lost) == (1.5, 0.1, 7, 0)
    assert cell.recovery_s == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("samples", "problem_text"),
    [
        ((*GOOD, at(12, "500 internal")), "answers 500 internal (1)"),
        ((*GOOD, at(12, "200")), "answers 200 (1)"),
        ((*GOOD, at(18.5, "500 internal")), "answers 500 internal (1) beside the fault"),
        ((*GOOD, at(21, "503 unavailable without Retry-After")), "beside the fault"),
        ((*GOOD, at(17.5, "202 inexact", 9.0)), "took 9.0 s"),
        ((GOOD[0], GOOD[-1]), "never answers 202 inexact"),
        ((GOOD[0], GOOD[-1]), "was not answered once during the fault"),
        (GOOD[:-1], "did not come back"),
        ((*GOOD[:-1], at(80, "200")), "did not come back"),
    ],
)
def test_what_is_not_is_told(samples: Sequence[Sample], problem_text: str) -> None:
    assert any(problem_text in problem for problem in judged(*samples).problems)


def test_what_was_promised_and_is_not_there_is_told() -> None:
    assert judged(*GOOD, lost=["like of post 1 by 2"]).problems == ["lost: like of post 1 by 2"]


def test_a_503_between_the_fault_and_its_end_is_nobodys_problem() -> None:
    assert judged(*GOOD, at(18.2, "503 unavailable")).problems == []


def test_a_function_that_starts_cold_before_the_fault_is_nobodys_problem() -> None:
    assert judged(at(2, "no answer: TimeoutError"), *GOOD).problems == []


def test_every_part_and_fault_is_expected_somehow_or_said_not_to_be() -> None:
    for part in ("redis", "mysql", "sqs", "redis+mysql"):
        for fault in FAULTS:
            cell = f"{part} {fault}"
            assert (cell in EXPECTED) is not (cell in NOT_TESTED), cell
    assert all(set(row) == set(OPERATIONS) for row in EXPECTED.values())


PROBLEM = {"content-type": "application/problem+json", "retry-after": "2"}
SAID = {"type": "https://x/unavailable", "title": "t", "detail": "d", "status": 503}


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        (Reply(200, {}, {"exact": True}), "200"),
        (Reply(202, {}, {"exact": False}), "202 inexact"),
        (Reply(503, PROBLEM, SAID), "503 unavailable"),
        (Reply(503, PROBLEM | {"retry-after": "0"}, SAID), "503 unavailable without Retry-After"),
        (Reply(503, PROBLEM, SAID | {"title": ""}), "503 and no problem+json"),
        (Reply(500, {}, {"message": "Internal Server Error"}), "500 and no problem+json"),
        (Reply(0, {}, {"title": "TimeoutError"}), "no answer: TimeoutError"),
    ],
)
def test_an_answer_has_a_label_and_what_breaks_the_contract_one_of_its_own(
    reply: Reply, label: str
) -> None:
    assert label_of(reply) == label
