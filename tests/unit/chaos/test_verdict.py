"""A cell is judged by the samples of its fault only."""

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


def test_expected_samples_have_no_problems() -> None:
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
def test_unexpected_sample_is_a_problem(samples: Sequence[Sample], problem_text: str) -> None:
    assert any(problem_text in problem for problem in judged(*samples).problems)


def test_lost_promise_is_a_problem() -> None:
    assert judged(*GOOD, lost=["like of post 1 by 2"]).problems == ["lost: like of post 1 by 2"]


def test_status_503_after_the_fault_is_ignored() -> None:
    assert judged(*GOOD, at(18.2, "503 unavailable")).problems == []


def test_cold_start_before_the_fault_is_ignored() -> None:
    assert judged(at(2, "no answer: TimeoutError"), *GOOD).problems == []


def test_every_part_and_fault_has_an_expectation_or_a_reason() -> None:
    for part in ("redis", "mysql", "sqs", "redis+mysql"):
        for fault in FAULTS:
            cell = f"{part} {fault}"
            assert (cell in EXPECTED) is not (cell in NOT_TESTED), cell
    assert all(set(row) == set(OPERATIONS) for row in EXPECTED.values())


PROBLEM = {"content-type": "application/problem+json", "retry-after": "2"}
BODY = {"slug": "unavailable", "title": "t", "detail": "d", "status": 503}


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        (Reply(200, {}, {"exact": True}), "200"),
        (Reply(202, {}, {"exact": False}), "202 inexact"),
        (Reply(503, PROBLEM, BODY), "503 unavailable"),
        (Reply(503, PROBLEM | {"retry-after": "0"}, BODY), "503 unavailable without Retry-After"),
        (Reply(503, PROBLEM, BODY | {"title": ""}), "503 and no problem+json"),
        (Reply(500, {}, {"message": "Internal Server Error"}), "500 and no problem+json"),
        (Reply(0, {}, {"title": "TimeoutError"}), "no answer: TimeoutError"),
    ],
)
def test_every_answer_has_a_label(reply: Reply, label: str) -> None:
    assert label_of(reply) == label
