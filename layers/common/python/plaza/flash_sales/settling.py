"""Settling: a sale that is over is compared, Redis with MySQL, and leaves Redis."""

from __future__ import annotations

from plaza.flash_sales import mysql_orders, mysql_vouchers, redis_vouchers, waiting
from plaza.flash_sales.flash_sales import Life, Voucher
from plaza.flash_sales.redis_vouchers import Seen
from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.observability import record

MOST_S = 40
CLOSED_FOR_S = 60  # the last reservations are on their way for a while
_LONG_CLOSED_S = 3_600
_PAGE = 100


def settle_vouchers(closed_for_s: int = CLOSED_FOR_S) -> int:
    """Settle the sales that closed ``closed_for_s`` ago, with nothing pending; how many were.

    A sale of which Redis and MySQL differ stays, and is counted each time. Raises RedisDown,
    MysqlDown.
    """
    settled = differing = after_id = 0
    deadline, now_us = Deadline.in_s(MOST_S), clock.now_us()
    closed_us = now_us - closed_for_s * 1_000_000
    drained = waiting.count_waiting() == 0 and not mysql_orders.read_stored(None, 1)
    while not deadline.has_passed:
        vouchers = mysql_vouchers.read_unsettled(now_us, after_id, _PAGE)
        if not vouchers:
            break
        after_id = vouchers[-1].id
        closed = [voucher for voucher in vouchers if voucher.terms.closes_us <= closed_us]
        seen = redis_vouchers.see([voucher.id for voucher in closed])
        for voucher in closed:
            held = seen.get(voucher.id)
            long_closed = voucher.terms.closes_us <= now_us - _LONG_CLOSED_S * 1_000_000
            if (held and held.pending) or not (drained or long_closed):
                continue
            if _agree(voucher, held):
                _finish(voucher, held)
                settled += 1
            else:
                differing += 1
    record("vouchers_settled", {"vouchers_differing": differing}, settled=settled)
    return settled


def _agree(voucher: Voucher, held: Seen | None) -> bool:
    """Redis was read after ``voucher``: what MySQL decided since can't be in one alone, as nothing
    was pending and the queue was empty."""
    if held is None or not held.live or held.stock == voucher.stock:
        return True
    record(
        "voucher_differs",
        voucher_id=voucher.id,
        redis_stock=held.stock,
        mysql_stock=voucher.stock,
        epoch=held.epoch,
    )
    return False


def _finish(voucher: Voucher, held: Seen | None) -> None:
    if held is not None:
        redis_vouchers.expire(Life(voucher.id, held.epoch, held.initial))
    mysql_vouchers.mark_settled(voucher.id)
