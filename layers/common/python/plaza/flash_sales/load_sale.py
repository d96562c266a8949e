"""Loading: the state of a sale comes into Redis from MySQL, at first and after Redis lost it.

While it is loaded and held, nobody can reserve, but what consumers save is told to it already. So
whatever is committed is in it: before the sale began, by the pages that are read after; later, by
its consumer. After a loss the orders that SQS refused are decided first, then it is held until the
queue is empty, 30 s at most: who had a reservation in the old sale goes before who clicks in the
new one.
"""

from __future__ import annotations

from plaza.flash_sales import (
    backlog,
    mysql_orders,
    mysql_vouchers,
    persist,
    redis_store,
    voucher_lookup,
)
from plaza.flash_sales.model import (
    NotOpen,
    NotReady,
    SaleGeneration,
    Voucher,
    VoucherMissing,
    VoucherWithdrawn,
)
from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.observability import record

MAX_RUN_S = 4.0
_PAGE = 5_000


def load_sale(voucher_id: int) -> None:
    """Have the state of a voucher in Redis, never over a live one. Returns when it is live.

    Raises VoucherMissing, VoucherWithdrawn; NotOpen when it is over; NotReady when it takes longer:
    whoever comes next goes on; RedisDown, MysqlDown.
    """
    voucher = voucher_lookup.find_voucher(voucher_id)
    if voucher is None:
        raise VoucherMissing(f"There is no voucher {voucher_id}")
    if voucher.shop_deleted:
        raise VoucherWithdrawn("The shop of this voucher was deleted")
    if voucher.finalized or voucher.terms.closes_us <= clock.now_us():
        raise NotOpen("This sale is over")
    if not redis_store.acquire_lease(voucher_id):
        raise NotReady("The sale is being made ready", retry_after_s=1)
    try:
        _load(voucher)
    finally:
        redis_store.release_lease(voucher_id)


def open_if_drained(sale: SaleGeneration) -> None:
    """Open a sale that is held. Raises NotReady when it isn't time; RedisDown."""
    if redis_store.open_sale(sale, None, backlog.count_unfinished() == 0) == "DRAINING":
        raise NotReady("Orders from before are being saved", retry_after_s=2)


def _load(voucher: Voucher) -> None:
    deadline, adopted = Deadline.in_s(MAX_RUN_S), 0
    now_us = clock.now_us()
    # A sale that was lost since it was found is not begun again: its generation is that of its loaders.
    known = redis_store.read_progress(voucher.id)
    generation = known[0].generation if known else mysql_vouchers.begin_generation(voucher.id)
    # In its first sale there is nothing from before.
    lost = generation > 1 and voucher.terms.opens_us <= now_us
    sale, phase, cursor = known or redis_store.begin_loading(
        SaleGeneration(voucher.id, generation, voucher.terms.stock),
        voucher,
        redis_store.MAX_DRAIN_US if lost else 0,
    )
    if phase == "withdrawn":  # and its shop is back
        redis_store.withdraw([sale], shop_deleted=False)
        phase, cursor = "loading", 0
    if phase == "loading":
        while page := mysql_orders.read_holders(voucher.id, cursor, _PAGE):
            if not redis_store.load_successes(sale, page):
                return
            adopted, cursor = adopted + len(page), page[-1][1]
            redis_store.open_sale(sale, cursor, drained=False)
            if deadline.has_passed:
                raise NotReady("The sale is being made ready", retry_after_s=1)
        record(
            "voucher_loaded",
            {"vouchers_loaded": 1},
            voucher_id=voucher.id,
            generation=sale.generation,
            sold=adopted,
            lost=lost,
        )
    if lost:
        persist.decide_outbox(deadline, voucher.id)
    if phase != "live":
        open_if_drained(sale) if lost else redis_store.open_sale(sale, None, drained=True)
