"""Finalize sales that are over: compare Redis with MySQL, then let the state in Redis expire."""

from __future__ import annotations

from plaza.commerce.flash_sales import (
    backlog,
    mysql_orders,
    mysql_vouchers,
    mysql_waitlist,
    redis_sales,
)
from plaza.commerce.flash_sales.model import SaleGeneration, Voucher
from plaza.commerce.flash_sales.redis_sales import SaleCounts
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

MAX_RUN_S = 40
FINALIZE_AFTER_S = 60  # the last reservations may not be on the queue yet
_FORCE_AFTER_S = 3_600
_PAGE = 100


def finalize_vouchers(closed_since_s: int = FINALIZE_AFTER_S) -> int:
    """Finalize the sales that closed at least ``closed_since_s`` ago, without pending orders and
    offers.

    Returns how many. Sales with drift stay; each run reports them. Raises RedisDown, MysqlDown.
    """
    finalized = drifting = after_id = 0
    deadline, now_us = Deadline.in_s(MAX_RUN_S), clock.now_us()
    closed_us = now_us - closed_since_s * 1_000_000
    drained = backlog.count_unfinished() == 0 and not mysql_orders.read_spilled(None, 1)
    while not deadline.has_passed:
        vouchers = mysql_vouchers.read_unfinalized(now_us, after_id, _PAGE)
        if not vouchers:
            break
        after_id = vouchers[-1].id
        closed = [voucher for voucher in vouchers if voucher.terms.closes_us <= closed_us]
        counts_by_id = redis_sales.read_counts([voucher.id for voucher in closed])
        for voucher in closed:
            counts = counts_by_id.get(voucher.id)
            long_closed = voucher.terms.closes_us <= now_us - _FORCE_AFTER_S * 1_000_000
            if (counts and (counts.pending or counts.offered)) or not (drained or long_closed):
                continue
            if _has_no_drift(voucher, counts):
                _finalize(voucher, counts)
                finalized += 1
            else:
                drifting += 1
    record("vouchers_finalized", {"vouchers_with_drift": drifting}, finalized=finalized)
    return finalized


def _has_no_drift(voucher: Voucher, counts: SaleCounts | None) -> bool:
    """Compare the stocks. They are comparable although Redis was read later: nothing was pending
    and the queue was empty, so MySQL decided no order in between."""
    if counts is None or not counts.live or counts.stock == voucher.stock:
        return True
    record(
        "voucher_drift_found",
        voucher_id=voucher.id,
        redis_stock=counts.stock,
        mysql_stock=voucher.stock,
        generation=counts.generation,
    )
    return False


def _finalize(voucher: Voucher, counts: SaleCounts | None) -> None:
    if counts is not None:
        redis_sales.expire(SaleGeneration(voucher.id, counts.generation, counts.initial_stock))
    mysql_waitlist.delete_all(voucher.id)
    mysql_vouchers.mark_finalized(voucher.id)
