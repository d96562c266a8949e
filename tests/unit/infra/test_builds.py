"""Background builds in steps."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from plaza.infra.derived import builds
from plaza.infra.derived.builds import BEGUN, FILLED, FINISHED, Builder, BuildProgress
from plaza.infra.runtime.clock import Deadline

ITEMS = range(1, 11)


class Filled:
    """Builds of ``ITEMS``: name of a build -> its items."""

    def __init__(self, begun: str = BEGUN) -> None:
        self.begun = begun
        self.items: dict[str, list[int]] = {}
        self.lost: set[str] = set()

    @property
    def builder(self) -> Builder[int]:
        return Builder("ten", self._begin, self._read, self._fill, int)

    def _begin(self, build: str) -> str:
        self.items[build] = []
        return self.begun

    def _read(self, after_id: int, limit: int) -> Sequence[int]:
        return ITEMS[after_id : after_id + limit]

    def _fill(self, build: str, items: Sequence[int], last: bool) -> str:
        if build in self.lost:
            return "LOST"
        self.items[build] += items
        return FINISHED if last else FILLED


def step(filled: Filled, build: str = "", after_id: int = 0, max_pages: int = 100) -> BuildProgress:
    return builds.advance(filled.builder, build, after_id, 4, max_pages)


def test_a_partial_page_finishes_a_build() -> None:
    filled = Filled()
    completed = step(filled)
    assert (completed.code, completed.after_id, completed.added) == (FINISHED, 10, 10)
    assert filled.items == {completed.build: [*ITEMS]}


def test_the_next_step_continues_a_bounded_build() -> None:
    filled = Filled()
    first = step(filled, max_pages=2)
    assert (first.code, first.after_id, first.added) == (FILLED, 8, 8)
    rest = step(filled, first.build, first.after_id)
    assert rest == BuildProgress(first.build, 10, FINISHED, 2)
    assert filled.items == {first.build: [*ITEMS]}


def test_a_step_past_its_deadline_adds_one_page() -> None:
    completed = builds.advance(Filled().builder, "", 0, 4, 100, deadline=Deadline.in_s(0))
    assert (completed.code, completed.added) == (FILLED, 4)


def test_a_build_without_items_is_finished() -> None:
    completed = step(Filled(), after_id=10)
    assert (completed.code, completed.after_id, completed.added) == (FINISHED, 10, 0)


def test_a_replaced_build_does_not_continue() -> None:
    filled = Filled()
    first = step(filled, max_pages=1)
    filled.lost.add(first.build)
    assert step(filled, first.build, first.after_id).code == "LOST"
    assert filled.items == {first.build: [1, 2, 3, 4]}


def test_a_refused_build_adds_nothing_and_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    completed = step(Filled("BUSY"))
    assert (completed.code, completed.added) == ("BUSY", 0)
    line = json.loads(capsys.readouterr().out)
    assert (line["event"], line["builder"], line["code"]) == ("build_refused", "ten", "BUSY")


def test_a_step_logs_how_many_items_it_added(capsys: pytest.CaptureFixture[str]) -> None:
    step(Filled(), max_pages=2)
    line = json.loads(capsys.readouterr().out)
    assert (line["event"], line["items_built"], line["code"]) == ("build_advanced", 8, FILLED)
