"""The sweep of outboxes: its end, and what it confirms."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import pytest

from plaza.infra.derived import outbox
from plaza.infra.derived.outbox import Progress, SweepResult, SweptPage
from plaza.infra.runtime.clock import Deadline

HOUR_US = 3_600_000_000


class Outboxes:
    """Outboxes with these numbers of pages, of one entry each."""

    def __init__(self, patch: pytest.MonkeyPatch, pages: dict[str, int]) -> None:
        self.pages = pages
        self.confirmed: Counter[str] = Counter()
        self.sent: list[str] = []
        self.before_us = 0
        patch.setattr(outbox, "confirm_all", self.confirm)

    def find(self, before_us: int) -> list[str]:
        self.before_us = before_us
        return list(self.pages)

    def read(self, members: Sequence[str], resend_after_us: int) -> list[SweptPage[str, str]]:
        return [
            SweptPage(
                member,
                [member],
                Progress(
                    "",
                    "",
                    member,
                    str(self.confirmed[member]),
                    "x",
                    "1" if self.confirmed[member] + 1 == self.pages[member] else "",
                ),
            )
            for member in members
        ]

    def send(self, entries: Sequence[str], deadline: Deadline) -> int:
        self.sent += entries
        return len(entries)

    def confirm(self, swept: Sequence[Progress]) -> None:
        self.confirmed.update(str(progress.member) for progress in swept)

    def sweep(
        self, max_entries: int = 1_000, max_s: float = 60, resend_after_us: int = 0
    ) -> SweepResult:
        return outbox.sweep(self.find, self.read, self.send, resend_after_us, max_entries, max_s)


def test_a_sweep_reads_all_pages_of_all_members(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Outboxes(monkeypatch, {"a": 1, "b": 3})
    assert result.sweep() == (4, 4)
    assert result.confirmed == {"a": 1, "b": 3}


def test_a_sweep_ends_after_max_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_MEMBERS_PER_ROUND", 2)
    assert Outboxes(monkeypatch, dict.fromkeys("abcde", 1)).sweep(max_entries=3) == (4, 4)


def test_a_sweep_ends_after_max_s(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Outboxes(monkeypatch, {"a": 1}).sweep(max_s=0) == (0, 0)


def test_a_sweep_confirms_only_groups_that_were_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_ENTRIES_PER_SEND", 2)
    result = Outboxes(monkeypatch, dict.fromkeys("abcd", 2))

    def refuse(entries: Sequence[str], deadline: Deadline) -> int:
        return len(entries) - ("a" in entries)

    swept = outbox.sweep(result.find, result.read, refuse, 0, 1_000, 60)
    assert result.confirmed["a"] == 0
    assert sorted(result.confirmed.values()) == [2, 2], "the other group, and no page of this one"
    assert swept.sent == 1 + 2 + 2


def test_a_sweep_finds_entries_older_than_resend_after(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Outboxes(monkeypatch, {})
    result.sweep(resend_after_us=HOUR_US)
    age_us = time.time_ns() // 1000 - result.before_us
    assert age_us == pytest.approx(HOUR_US, abs=5_000_000)


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 23])
def test_each_of_many_members_is_found_as_likely(count: int) -> None:
    counter: Counter[int] = Counter()
    for _ in range(200):
        ranks = [
            rank
            for first, size in outbox._choose_ranks(count, 5)
            for rank in range(first, first + size)
        ]
        assert len(set(ranks)) == len(ranks) == min(count, 5)
        counter.update(ranks)
    assert set(counter) == set(range(count))
