"""Load the state of a sale from MySQL into Redis, when it is created and after Redis lost it.

A generation that is loading or draining takes no reservations, but consumers acknowledge to it. So
it gets every success: those committed before it began from the pages that are read afterwards,
later ones from their consumer. Cancelled orders are loaded first: a consumer that read one of them
as a success may still acknowledge it. After a loss the orders that SQS refused are decided first,
and the generation drains until the queue is empty, 30 s at most: reservations of the lost
generation take precedence over new ones.

A node that was promoted has another term: it may lack orders and buyers who joined, and have
buyers who left. What it lacks is read again; ``make_offers`` in Lua closes the sale before, if a
unit returns that buyers may wait for.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.commerce.flash_sales import (
    backlog,
    mysql_orders,
    mysql_vouchers,
    mysql_waitlist,
    persist,
    redis_load,
    redis_orders,
    redis_sales,
    redis_waitlist,
    voucher_lookup,
)
from plaza.commerce.flash_sales.model import (
    CANCELLED,
    NotOpen,
    NotReady,
    SaleGeneration,
    Voucher,
    VoucherMissing,
    VoucherWithdrawn,
)
from plaza.commerce.flash_sales.redis_load import LoadProgress
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

MAX_RUN_S = 4.0
_PAGE = 5_000


def load_sale(voucher_id: int) -> None:
    """Load the state of a voucher into Redis unless it is live there and was read under the current
    term. Returns when it is live.

    Raises VoucherMissing, VoucherWithdrawn; NotOpen if the sale is over; NotReady if loading takes
    longer than 4 s or another process loads: the next call continues; RedisDown, MysqlDown.
    """
    voucher = voucher_lookup.find_voucher(voucher_id)
    if voucher is None:
        raise VoucherMissing(f"Voucher {voucher_id} does not exist.")
    if voucher.withdrawn:
        raise VoucherWithdrawn("This voucher was withdrawn.")
    if voucher.finalized or voucher.terms.closes_us <= clock.now_us():
        raise NotOpen("This sale is over.")
    if not redis_load.acquire_lease(voucher_id):
        raise NotReady("This sale is being loaded; retry after 1 s.", retry_after_s=1)
    try:
        _load(voucher)
    finally:
        redis_load.release_lease(voucher_id)


def open_if_drained(sale: SaleGeneration) -> None:
    """Open a draining sale. Raises NotReady while older orders may be queued; RedisDown."""
    _open(sale, backlog.has_drained(sale))


def _open(sale: SaleGeneration, drained: bool, term: str = "") -> None:
    if redis_load.open_sale(sale, drained, term) == "DRAINING":
        raise NotReady("Earlier orders are being stored; retry after 2 s.", retry_after_s=2)
    redis_waitlist.leave(sale, [])  # offers units to the buyers who waited before the loss


def _load(voucher: Voucher) -> None:
    deadline = Deadline.in_s(MAX_RUN_S)
    now_us, term = clock.now_us(), redis_sales.read_term(voucher.id)
    # State that Redis loses from here on is not begun again: its generation has been used.
    progress = redis_load.read_progress(voucher.id)
    generation = (
        progress.sale.generation if progress else mysql_vouchers.begin_generation(voucher.id)
    )
    # The first generation follows no other, unless its node has another term.
    is_current = progress is None or progress.is_current
    lost = (generation > 1 or not is_current) and voucher.terms.opens_us <= now_us
    progress = progress or redis_load.begin_loading(
        SaleGeneration(voucher.id, generation, voucher.terms.stock),
        voucher,
        redis_load.MAX_DRAIN_US if lost else 0,
    )
    sale = progress.sale
    if progress.phase == "withdrawn":  # its shop was restored
        redis_sales.withdraw([sale], withdrawn=False)
        progress = LoadProgress(sale, "loading", is_current=is_current)
    if not is_current and not (progress.phase == "loading" and (progress.stage or progress.after)):
        stage = 0 if _lacks_orders(voucher) else 2
        progress = LoadProgress(sale, "loading", stage, is_current=False)
    if progress.phase == "loading":
        sold = _load_orders(progress, deadline)
        if sold is None:
            return
        record(
            "voucher_loaded",
            {"vouchers_loaded": 1},
            voucher_id=voucher.id,
            generation=sale.generation,
            sold=sold,
            lost=lost,
        )
    if lost:
        persist.decide_spilled(deadline, voucher.id)
    if progress.phase != "live":
        has_loaded = progress.phase == "loading"
        drained = (has_loaded and not lost) or backlog.has_drained(sale)
        _open(sale, drained, term if has_loaded else "")


def _lacks_orders(voucher: Voucher) -> bool:
    counts = redis_sales.read_counts([voucher.id]).get(voucher.id)
    return counts is None or counts.lacks_orders(voucher)


def _load_orders(progress: LoadProgress, deadline: Deadline) -> int | None:
    """Load the cancelled orders, the successes and the waitlist; return how many successes, None if
    another generation has begun. Raises NotReady at the deadline."""
    sale, sold = progress.sale, 0
    if progress.stage == 0:
        while page := mysql_orders.read_cancelled(sale.voucher_id, progress.after, _PAGE):
            if not redis_orders.load_orders(sale, page, CANCELLED):
                return None
            progress = _advance(progress._replace(after=page[-1][0]), deadline)
        progress = progress._replace(stage=1, after=0)
    while progress.stage == 1 and (
        page := mysql_orders.read_holders(sale.voucher_id, progress.after, _PAGE)
    ):
        if not redis_orders.load_orders(sale, page, None):
            return None
        sold += len(page)
        progress = _advance(progress._replace(after=page[-1][1]), deadline)
    if progress.stage == 1:
        progress = progress._replace(stage=2, after=0)
    while page := mysql_waitlist.read(sale.voucher_id, progress.after, _PAGE):
        if not join_stored(sale, page):
            return None
        progress = _advance(progress._replace(after=page[-1][0]), deadline)
    if not progress.is_current:
        _remove_absent(sale, redis_waitlist.read_buyers(sale))  # lost requests removed them
    return sold


def join_stored(sale: SaleGeneration, waiting: Sequence[tuple[int, int]]) -> bool:
    """Add (seq, buyer) pairs that were read from MySQL to the waitlist, without those who have left
    since: the row decides. Returns False if another generation has begun. A round trip, and a
    statement for each 500 buyers. Raises RedisDown, MysqlDown."""
    if not redis_waitlist.join(sale, waiting):
        return False
    _remove_absent(sale, [buyer_id for _, buyer_id in waiting])
    return True


def _remove_absent(sale: SaleGeneration, buyer_ids: Sequence[int]) -> None:
    """Remove buyers from the waitlist of whom MySQL has no entry. A statement for each 500."""
    for start in range(0, len(buyer_ids), redis_waitlist.MAX_LEAVING):
        part = buyer_ids[start : start + redis_waitlist.MAX_LEAVING]
        waiting = {buyer_id for _, buyer_id in mysql_waitlist.find(sale.voucher_id, part)}
        if absent := [buyer_id for buyer_id in part if buyer_id not in waiting]:
            redis_waitlist.leave(sale, absent)
            # One who joined meanwhile had the position that was removed.
            if joined := mysql_waitlist.find(sale.voucher_id, absent):
                join_stored(sale, joined)


def _advance(progress: LoadProgress, deadline: Deadline) -> LoadProgress:
    redis_load.advance(progress)
    if deadline.has_passed:
        raise NotReady("This sale is being loaded; retry after 1 s.", retry_after_s=1)
    return progress
