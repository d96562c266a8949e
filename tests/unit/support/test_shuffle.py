"""A seed gives an order of files and of the tests in each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support import shuffle

FILES, TESTS = 6, 8


@dataclass(eq=False)
class Item:
    """A test: its file and its number."""

    path: Path
    number: int


def order(seed: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int]]:
    monkeypatch.setattr(shuffle, "SEED", seed)
    items: list[Any] = [
        Item(path=Path(f"test_{file}.py"), number=n) for file in range(FILES) for n in range(TESTS)
    ]
    shuffle.shuffle(items)
    return [(item.path, item.number) for item in items]


def test_a_seed_repeats_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert order("7", monkeypatch) == order("7", monkeypatch) != order("8", monkeypatch)


def test_without_a_seed_the_order_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert order("", monkeypatch) == sorted(order("7", monkeypatch))


def test_the_tests_of_a_file_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [path for path, _ in order("7", monkeypatch)]
    changes = sum(before != after for before, after in pairwise(paths))
    assert changes == FILES - 1
    assert paths != sorted(paths)


def test_the_tests_of_a_file_are_shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [number for _, number in order("7", monkeypatch)]
    assert numbers[:TESTS] != sorted(numbers[:TESTS])
