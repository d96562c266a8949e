"""The pairs of faults, and the broken promises after one."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from cli.paths import ROOT
from tests.chaos import report
from tests.chaos.pairs import (
    FAULTS,
    Pair,
    choose_pairs,
    count_lost_promises,
    find_reason_to_skip,
    group,
    judge_pair,
    render,
)
from tests.chaos.traffic import Address, Likes, Lost, Operation, Reply, Rows, Sample

PAIR = Pair("redis down", "sqs refusing")


class Like(Operation):
    name = "like"

    def __init__(self) -> None:
        self.promises = Counter({str(PAIR): 7, "": 3})

    def find_lost(self, rows: Rows) -> list[Lost]:
        return [(str(PAIR), "like of post 1 by 2"), ("", "like of post 3 by 4")]


def test_every_pair_is_played_or_skipped_with_a_reason() -> None:
    played, skipped = choose_pairs()
    assert len(played) + len(skipped) == len(list(itertools.combinations(FAULTS, 2)))
    assert not set(played) & set(skipped)
    assert all(skipped.values())
    assert sum(len(some) for _, some in group(played)) == len(played)


@pytest.mark.parametrize(
    "pair",
    [
        ("redis down", "sqs refusing"),
        ("redis hanging", "mysql down"),
        ("redis+mysql down", "sqs down"),
        ("cluster dying-unreplicated", "sqs refusing"),
        ("cluster failing-over", "mysql hanging"),
        ("redis swapping", "sqs refusing"),
        ("redis swapping-unreplicated", "mysql down"),
        ("mysql down", "sqs emptied"),
    ],
)
def test_faults_of_different_parts_are_played(pair: tuple[str, str]) -> None:
    assert Pair(*pair) in choose_pairs()[0]


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("redis down", "redis slow"), "one Redis"),
        (("redis slow", "redis+mysql down"), "one Redis"),
        (("redis down", "mysql down"), "it is redis+mysql down"),
        (("redis down", "cluster failing-over"), "one Redis or a cluster"),
        (("redis emptied", "sqs emptied"), "both copies"),
        (("redis swapping-unreplicated", "sqs emptied"), "both copies"),
        (("redis slow", "redis swapping"), "one Redis"),
    ],
)
def test_faults_that_exclude_each_other_are_skipped(pair: tuple[str, str], reason: str) -> None:
    assert reason in str(find_reason_to_skip(Pair(*pair)))


def test_sqs_fails_before_the_store_with_the_other_copy() -> None:
    assert Pair("redis down", "sqs refusing").in_start_order == ["sqs refusing", "redis down"]
    assert Pair("redis slow", "mysql down").in_start_order == ["redis slow", "mysql down"]


@pytest.mark.parametrize(
    ("pair", "is_promise"),
    [
        (Pair("redis+mysql down", "sqs refusing"), False),
        (Pair("redis+mysql refusing", "sqs refusing"), True),
        (Pair("redis down", "sqs refusing"), True),
    ],
)
def test_provisional_answer_is_no_promise_when_its_only_copy_is_lost(
    pair: Pair, is_promise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Reply(202, {}, {"liked": True, "exact": False})
    monkeypatch.setattr(Address, "ask", lambda *args, **options: answer)
    likes = Likes(Address("nowhere", 0), {1: "token"}, [2], [])
    likes.is_202_final = not pair.destroys_only_copy
    likes.step()
    assert likes.promises.total() == len(likes.find_lost(lambda *args: [])) == is_promise


def test_answer_outside_of_the_contract_is_a_problem() -> None:
    samples = {"like": [Sample(1, 0.1, "503 unavailable"), Sample(2, 0.1, "500 internal")]}
    result = judge_pair(PAIR, [Like()], samples, 0, 10)
    assert result.problems == ["like answers 500 internal (1)"]
    assert judge_pair(PAIR, [Like()], samples, 0, 2).problems == []


def test_loss_is_reported_for_the_pair_of_its_promise() -> None:
    result, other = judge_pair(PAIR, [], {}, 0, 1), judge_pair(Pair("a b", "c d"), [], {}, 0, 1)
    count_lost_promises([result, other], [Like()], lambda *asked: [])
    assert (result.promised, result.lost, other.lost) == (7, 1, 0)
    assert result.problems == ["like lost: like of post 1 by 2"]
    text = render([result], {Pair("redis down", "redis slow"): "one Redis"}, 60)
    assert "| redis down | sqs refusing 1/7 |" in text
    assert "1 not played: one Redis" in text


def test_matrix_swaps_pairs_and_deaths_are_written_to_separate_places(tmp_path: Path) -> None:
    page = tmp_path / "failures.md"
    page.write_text((ROOT / "docs" / "failures.md").read_text())
    report.write(page, "the matrix")
    report.write(page, "the swaps", report.BEGIN_SWAPS)
    report.write(page, "the pairs", report.BEGIN_PAIRS)
    report.write(page, "the deaths", report.BEGIN_DEATHS)
    text = page.read_text()
    parts = ("the matrix", report.BEGIN_SWAPS, "the swaps", report.BEGIN_PAIRS, "the pairs")
    assert sorted(parts, key=text.index) == [*parts]
    assert text.index("the pairs") < text.index(report.BEGIN_DEATHS) < text.index("the deaths")
    assert text.count(report.END) == 4
    assert "## The soak" in text
