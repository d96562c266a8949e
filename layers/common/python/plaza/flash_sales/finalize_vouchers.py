"""Settling: a sale that is over is compared, Redis with MySQL, and leaves Redis."""

from __future__ import annotations

from plaza.flash_sales import backlog, mysql_orders, mysql_vouchers, redis_store
from plaza.flash_sales.model import SaleGeneration, Voucher
from plaza.flash_sales.redis_store import SaleCounts
from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.observability import record

MAX_RUN_S = 40
FINALIZE_AFTER_S = 60  # the last reservations are on their way for a while
_FORCE_AFTER_S = 3_600
_PAGE = 100


def finalize_vouchers(closed_since_s: int = FINALIZE_AFTER_S) -> int:
    """Finalize the sales that closed ``closed_since_s`` ago, with nothing pending; how many were.

    A sale of which Redis and MySQL differ stays, and is counted each time. Raises RedisDown,
    MysqlDown.
    """
    finalized = differing = after_id = 0
    deadline, now_us = Deadline.in_s(MAX_RUN_S), clock.now_us()
    closed_us = now_us - closed_since_s * 1_000_000
    drained = backlog.count_unfinished() == 0 and not mysql_orders.read_outbox(None, 1)
    while not deadline.has_passed:
        vouchers = mysql_vouchers.read_unfinalized(now_us, after_id, _PAGE)
        if not vouchers:
            break
        after_id = vouchers[-1].id
        closed = [voucher for voucher in vouchers if voucher.terms.closes_us <= closed_us]
        seen = redis_store.read_counts([voucher.id for voucher in closed])
        for voucher in closed:
            counts = seen.get(voucher.id)
            long_closed = voucher.terms.closes_us <= now_us - _FORCE_AFTER_S * 1_000_000
            if (counts and counts.pending) or not (drained or long_closed):
                continue
            if _has_no_drift(voucher, counts):
                _finalize(voucher, counts)
                finalized += 1
            else:
                differing += 1
    record("vouchers_finalized", {"vouchers_with_drift": differing}, finalized=finalized)
    return finalized


def _has_no_drift(voucher: Voucher, counts: SaleCounts | None) -> bool:
    """Redis was read after ``voucher``: what MySQL decided since can't be in one alone, as nothing
    was pending and the queue was empty."""
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
        redis_store.expire(SaleGeneration(voucher.id, counts.generation, counts.initial_stock))
    mysql_vouchers.mark_finalized(voucher.id)
