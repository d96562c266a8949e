"""Quotas of a cycle: it ends in 28 days, however often runs begin and however late they are."""

from __future__ import annotations

import pytest

from plaza.infra.derived.comparisons import CYCLE_S, choose
from plaza.operate.reconciliation.model import MAX_HASTE, compute_quota

SUBJECTS = 1_000_000
DAY_S = 86_400


def play(interval_s: float, estimate: float = 1.0, pause_s: float = 0) -> list[int]:
    """Return the quota of each run of a cycle; the second run begins ``pause_s`` late."""
    compared, open_s = 0, 0.0
    quotas: list[int] = []
    while compared < SUBJECTS:
        quota = compute_quota(compared, int((SUBJECTS - compared) * estimate), open_s, interval_s)
        quotas.append(min(quota, SUBJECTS - compared))
        compared += quotas[-1]
        open_s += interval_s + (pause_s if len(quotas) == 1 else 0)
        assert len(quotas) < 1_000
    return quotas


@pytest.mark.parametrize("days", [1, 2, 7, 28, 90])
def test_a_round_ends_in_28_days(days: int) -> None:
    quotas = play(days * DAY_S)
    assert (len(quotas) - 1) * days < 28
    assert max(quotas) - min(quotas) <= 1 + SUBJECTS % len(quotas)


def test_runs_more_often_than_daily_compare_a_share_of_a_day_each() -> None:
    assert max(play(3_600)) <= SUBJECTS * DAY_S / CYCLE_S * 1.1


def test_an_estimate_of_half_lengthens_no_round() -> None:
    quotas = play(DAY_S, estimate=0.5)
    assert len(quotas) <= 29
    assert max(quotas) <= MAX_HASTE * SUBJECTS / 28


def test_a_late_round_makes_haste_within_limits() -> None:
    quotas = play(DAY_S, pause_s=100 * DAY_S)
    assert max(quotas) <= MAX_HASTE * SUBJECTS / 28 + 1
    assert len(quotas) <= 2 + 28 / MAX_HASTE


def test_a_round_from_the_future_and_an_empty_one_have_ordinary_shares() -> None:
    assert compute_quota(0, 2_800, -365 * DAY_S, -5) == 100
    assert compute_quota(0, 0, 0, 0) == 0


def test_ids_are_chosen_by_rows_and_large_ones_are_left_out() -> None:
    sizes = {1: 5, 2: 100, 3: 5, 4: 1, 5: 1}
    assert choose([1, 2, 3, 4, 5], sizes, 10) == ([1, 3], 3)
    assert choose([2, 7], sizes, 10) == ([7], 7)
    assert choose([2], sizes, 10) == ([], 2)
