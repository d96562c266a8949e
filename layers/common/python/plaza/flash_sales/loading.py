"""Loading: the state of a sale comes into Redis from MySQL, at first and after Redis lost it.

While it is loaded and held, nobody can reserve, but what consumers save is told to it already. So
whatever is committed is in it: before the life began, by the pages that are read after; later, by
its consumer. After a loss the orders that SQS refused are decided first, then it is held until the
queue is empty, 30 s at most: who had a reservation in the old life goes before who clicks in the
new one.
"""

from __future__ import annotations

from plaza.flash_sales import lookup, mysql_orders, mysql_vouchers, redis_vouchers, saving, waiting
from plaza.flash_sales.flash_sales import (
    Life,
    NotOpen,
    NotReady,
    Voucher,
    VoucherGone,
    VoucherMissing,
)
from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.observability import record

MOST_S = 4.0
_PAGE = 5_000


def bring_back(voucher_id: int) -> None:
    """Have the state of a voucher in Redis, never over one that lives. Returns when it lives.

    Raises VoucherMissing, VoucherGone; NotOpen when it is over; NotReady when it takes longer:
    whoever comes next goes on; RedisDown, MysqlDown.
    """
    voucher = lookup.find(voucher_id)
    if voucher is None:
        raise VoucherMissing(f"There is no voucher {voucher_id}")
    if voucher.gone:
        raise VoucherGone("The shop of this voucher was deleted")
    if voucher.settled or voucher.terms.closes_us <= clock.now_us():
        raise NotOpen("This sale is over")
    if not redis_vouchers.take_lease(voucher_id):
        raise NotReady("The sale is being made ready", retry_after_s=1)
    try:
        _load(voucher)
    finally:
        redis_vouchers.drop_lease(voucher_id)


def open_if_drained(life: Life) -> None:
    """Open a life that is held. Raises NotReady when it isn't time; RedisDown."""
    if redis_vouchers.open_life(life, None, waiting.count_waiting() == 0) == "HELD":
        raise NotReady("Orders from before are being saved", retry_after_s=2)


def _load(voucher: Voucher) -> None:
    deadline, adopted = Deadline.in_s(MOST_S), 0
    now_us = clock.now_us()
    # A life that was lost since it was found is not begun again: its epoch is that of its loaders.
    known = redis_vouchers.find_loading(voucher.id)
    epoch = known[0].epoch if known else mysql_vouchers.begin_life(voucher.id)
    # In its first life there is nothing from before.
    lost = epoch > 1 and voucher.terms.opens_us <= now_us
    life, phase, cursor = known or redis_vouchers.load(
        Life(voucher.id, epoch, voucher.terms.stock), voucher, redis_vouchers.HOLD_US if lost else 0
    )
    if phase == "gone":  # and its shop is back
        redis_vouchers.withdraw([life], gone=False)
        phase, cursor = "loading", 0
    if phase == "loading":
        while page := mysql_orders.read_holders(voucher.id, cursor, _PAGE):
            if not redis_vouchers.adopt(life, page):
                return
            adopted, cursor = adopted + len(page), page[-1][1]
            redis_vouchers.open_life(life, cursor, drained=False)
            if deadline.has_passed:
                raise NotReady("The sale is being made ready", retry_after_s=1)
        record(
            "voucher_loaded",
            {"vouchers_loaded": 1},
            voucher_id=voucher.id,
            epoch=life.epoch,
            sold=adopted,
            lost=lost,
        )
    if lost:
        saving.save_stored(deadline, voucher.id)
    if phase != "live":
        open_if_drained(life) if lost else redis_vouchers.open_life(life, None, drained=True)
