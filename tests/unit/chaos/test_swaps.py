"""Failovers there and back: their expectations, and the comparison of the API with MySQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pytest

from tests.chaos import report, swaps
from tests.chaos.expectations import EXPECTED, EXPECTED_OF_SWAPS, SWAP_OPERATIONS, SWAPS
from tests.chaos.traffic import Address, CheckIns, Follows, Likes, Reply, Rows
from tests.chaos.verdict import Cell, Row

USER, OTHER = 1, 2
ITEMS = range(100, 260)
Ask = Callable[[str, str, str | None, Any], Reply]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Ask], None]:
    """Return a function that sets what the API answers."""

    def use(ask: Ask) -> None:
        monkeypatch.setattr(
            Address, "ask", lambda _, method, path, token, body=None: ask(method, path, token, body)
        )

    return use


def saved(*result: tuple[Any, ...]) -> Rows:
    return lambda sql, *args: result


def test_each_swap_is_played_with_and_without_traffic() -> None:
    assert len(swaps.NAMES) == 2 * len(SWAPS) == len(set(swaps.NAMES))
    assert not set(SWAPS) & EXPECTED.keys()
    for swap in SWAPS:
        assert tuple(EXPECTED_OF_SWAPS[swap]) == SWAP_OPERATIONS


@pytest.mark.parametrize("make", [Likes, Follows])
def test_each_target_is_touched_once_before_one_is_touched_twice(
    make: type[Likes], answer: Callable[[Ask], None]
) -> None:
    paths: Counter[str] = Counter()

    def ask(method: str, path: str, *_: object) -> Reply:
        paths[path] += 1
        return Reply(202, {}, {"liked": True, "following": True})

    answer(ask)
    operation = make(Address("nowhere", 0), {USER: "a", OTHER: "b"}, ITEMS, [])
    assert {operation.step()[1] for _ in ITEMS} == {"202 inexact"}
    assert list(paths.values()) == [1] * len(ITEMS)
    assert operation.promises.total() == len(ITEMS)


def show_likes(total: int, liked: bool, *, exact: bool = True) -> Ask:
    def ask(method: str, path: str, token: str | None, body: Any) -> Reply:
        if method == "PUT":
            return Reply(200, {}, {"liked": True})
        items = [
            {"id": target["id"], "likes": total, "mine": {"liked": liked}}
            for target in body["targets"]
        ]
        assert len(items) <= 100
        return Reply(200, {}, {"items": items, "exact": exact})

    return ask


@pytest.mark.parametrize(
    ("shown", "is_true"),
    [
        (show_likes(2, True), True),
        (show_likes(1, True), False),
        (show_likes(2, False), False),
        (show_likes(2, True, exact=False), False),
    ],
)
def test_likes_that_the_api_shows_are_compared_with_rows(
    answer: Callable[[Ask], None], shown: Ask, is_true: bool
) -> None:
    answer(shown)
    likes = Likes(Address("nowhere", 0), {USER: "a"}, ITEMS, [])
    for _ in ITEMS:
        likes.step()
    rows = saved(*((user, item) for item in ITEMS for user in (USER, OTHER)))
    assert likes.find_lost(rows) == []
    assert len(likes.find_untrue(rows)) == (0 if is_true else len(ITEMS))


def test_like_without_a_row_is_lost(answer: Callable[[Ask], None]) -> None:
    answer(show_likes(0, False))
    likes = Likes(Address("nowhere", 0), {USER: "a"}, ITEMS, [])
    likes.step()
    assert likes.find_lost(saved()) == [("", f"like of post {ITEMS[0]} by {USER}")]
    assert likes.find_untrue(saved()) == []


@pytest.mark.parametrize(("followers", "following"), [(1, True), (0, True), (1, False)])
def test_follows_that_the_api_shows_are_compared_with_rows(
    answer: Callable[[Ask], None], followers: int, following: bool
) -> None:
    def ask(method: str, path: str, *_: object) -> Reply:
        if method == "PUT":
            return Reply(200, {}, {"following": True})
        assert path == f"/users/{ITEMS[0]}"
        shown = {"followers": followers, "mine": {"following": following}, "exact": True}
        return Reply(200, {}, shown)

    answer(ask)
    follows = Follows(Address("nowhere", 0), {USER: "a"}, ITEMS, [])
    follows.step()
    is_true = (followers, following) == (1, True)
    assert (follows.find_untrue(saved((USER, ITEMS[0]))) == []) is is_true


@pytest.mark.parametrize(
    ("days", "rows", "lost", "untrue"),
    [
        ([24], [(USER, date(2026, 11, 24))], 0, 0),
        ([], [(USER, date(2026, 11, 24))], 0, 1),
        ([24], [], 1, 0),
    ],
)
def test_check_ins_are_compared_with_rows_and_the_api(
    answer: Callable[[Ask], None],
    days: list[int],
    rows: Sequence[tuple[Any, ...]],
    lost: int,
    untrue: int,
) -> None:
    def ask(method: str, path: str, *_: object) -> Reply:
        assert path in ("/checkins/today", "/checkins?month=2026-11")
        return Reply(200, {}, {"today": "2026-11-24", "days": days, "exact": True})

    answer(ask)
    check_ins = CheckIns(Address("nowhere", 0), {USER: "a"})
    assert check_ins.step()[1] == "200"
    assert len(check_ins.find_lost(saved(*rows))) == lost
    assert len(check_ins.find_untrue(saved(*rows))) == untrue


def test_report_has_a_row_for_each_swap_and_each_problem() -> None:
    cells = [Cell(name, Counter({"200": 2}), 0.1, 0.1, 0.2, 5, 0) for name in SWAP_OPERATIONS]
    rows = [Row(name, "they swap", cells, 3, 1.0, []) for name in swaps.NAMES]
    rows[-1].problems.append("like: lost: a like")
    text = report.render_swaps(rows, 60)
    assert text.count("\n| swapping") == len(swaps.NAMES)
    assert text.count("they swap") == 1
    assert "**swapping-unreplicated-quiet is not as expected**: like: lost: a like" in text
    assert "30 follows" in text
