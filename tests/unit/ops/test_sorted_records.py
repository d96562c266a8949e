"""Sorting in bounded memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from ops import sorted_records
from ops.sorted_records import SortedRecords


@pytest.mark.parametrize("run_records", [1, 7, 100, 101])
def test_records_are_read_in_order_as_often_as_needed(
    monkeypatch: pytest.MonkeyPatch, run_records: int
) -> None:
    monkeypatch.setattr(sorted_records, "RUN_RECORDS", run_records)
    monkeypatch.setattr(sorted_records, "_BLOCK_RECORDS", 3)
    chosen = random.Random(7)
    numbers = [(chosen.choice([0, 1, 2**63, 2**64 - 1]), chosen.randrange(9)) for _ in range(100)]
    with SortedRecords(2) as records:
        for pair in numbers:
            records.add(*pair)
        assert list(records) == list(records) == sorted(numbers)


def test_memory_does_not_grow_with_the_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_records, "RUN_RECORDS", 1_000)
    monkeypatch.setattr(sorted_records, "_BLOCK_RECORDS", 100)
    with SortedRecords(3) as records:
        tracemalloc.start()
        for number in range(20_000):
            records.add(number, number, number)
        assert sum(1 for _ in records) == 20_000
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak_bytes < 20_000 * 24, "less than the records"
