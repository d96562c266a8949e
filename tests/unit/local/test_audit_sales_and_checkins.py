"""Vouchers and check-ins in the audit: equal stores are clean, and differences are found."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from local.audit.checkins import Calendar, count_streak, find_wrong_calendars
from local.audit.vouchers import SaleState, VoucherRow, find_oversold, find_wrong_sales

DAY = date(2026, 11, 21)
DAYS = {DAY, DAY - timedelta(days=1), DAY - timedelta(days=3)}
NOVEMBER = date(2026, 11, 1)
SOLD = VoucherRow(initial_stock=10, stock=7, sold=3)
LIVE = SaleState(live=True, initial_stock=10, stock=7, pending=0, sold=3, waiting=0)


def test_consistent_sale_with_pending_orders_is_clean() -> None:
    assert list(find_wrong_sales({1: SOLD}, {1: LIVE})) == []
    pending = LIVE._replace(stock=5, pending=2, waiting=2)
    assert list(find_wrong_sales({1: SOLD}, {1: pending})) == []
    loading = SaleState(live=False, initial_stock=10, stock=10, pending=0, sold=0, waiting=0)
    assert list(find_wrong_sales({1: SOLD}, {1: loading})) == []
    assert list(find_wrong_sales({1: SOLD}, {})) == []


@pytest.mark.parametrize(
    "sale",
    [
        LIVE._replace(stock=6),
        LIVE._replace(stock=6, pending=1),
        LIVE._replace(stock=6, sold=4),
        LIVE._replace(initial_stock=11, stock=8),
        LIVE._replace(waiting=1),
        LIVE._replace(cancelled=1),
    ],
)
def test_inconsistent_sale_is_found(sale: SaleState) -> None:
    [(of, text)] = find_wrong_sales({1: SOLD}, {1: sale})
    assert of == "voucher 1"
    assert "Redis" in text


def test_sale_missing_in_mysql_is_found() -> None:
    assert [of for of, _ in find_wrong_sales({}, {2: LIVE})] == ["voucher 2"]


@pytest.mark.parametrize(
    "sold",
    [
        SOLD._replace(stock=6),
        VoucherRow(3, -1, 4),
        VoucherRow(3, 0, 4),
        SOLD._replace(cancelled=1),
    ],
)
def test_stock_that_differs_from_the_orders_is_found(sold: VoucherRow) -> None:
    assert list(find_oversold({1: SOLD})) == []
    assert [of for of, _ in find_oversold({1: sold})] == ["voucher 1"]


def test_streak_ends_on_the_newest_day() -> None:
    assert count_streak(DAYS) == (DAY, 2)
    assert count_streak(set()) == (None, 0)


def test_consistent_calendar_is_clean() -> None:
    good = Calendar((DAY, 2), {NOVEMBER: frozenset(DAYS), date(2026, 10, 1): frozenset()})
    assert list(find_wrong_calendars({7: DAYS}, {7: good, 8: Calendar((None, 0))})) == []
    assert list(find_wrong_calendars({}, {7: Calendar((DAY, 9), pending=1)})) == []
    assert list(find_wrong_calendars({7: DAYS}, {7: Calendar()})) == []


@pytest.mark.parametrize(
    "calendar",
    [
        Calendar((DAY, 3)),
        Calendar((DAY - timedelta(days=1), 1)),
        Calendar((None, 0)),
        Calendar((DAY, 2), {NOVEMBER: frozenset({DAY})}),
        Calendar((DAY, 2), {NOVEMBER: frozenset(DAYS | {date(2026, 11, 1)})}),
        Calendar((DAY, 2), {NOVEMBER: frozenset()}),
    ],
)
def test_inconsistent_calendar_is_found(calendar: Calendar) -> None:
    [(of, _)] = find_wrong_calendars({7: DAYS}, {7: calendar})
    assert "user 7" in of
