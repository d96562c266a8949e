"""Send overdue pending orders again, and decide those that are too old.

It covers an API function that ended before it sent an order, an unavailable queue, and a consumer
that ended before it acknowledged. Nothing is resent while the queue has a long backlog. Orders that
SQS refused and orders that are too old are decided here, by stock. After an unreplicated failover
or a restart with older data, Redis lacks successes that no message repeats: all successes of the
sale are then acknowledged again. ``infra.derived.outbox`` is not used: MySQL lists the vouchers,
their pending orders are an index already, and old orders are decided instead of sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from plaza.commerce.flash_sales import (
    load_sale,
    mysql_orders,
    mysql_vouchers,
    persist,
    redis_orders,
    redis_sales,
    waitlist,
)
from plaza.commerce.flash_sales.model import (
    CANCELLED,
    NotOpen,
    OrderRow,
    Voucher,
    VoucherMissing,
    VoucherWithdrawn,
)
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.commerce.flash_sales.redis_orders import AcknowledgeResult
from plaza.commerce.flash_sales.settings import sale_settings
from plaza.commerce.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.infra.derived import ids
from plaza.infra.jobs.scheduled_jobs import run_jobs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record

MAX_RUN_S = 40
PREPARE_US = 600_000_000
"""How long before a sale opens its state is loaded, if it is not in Redis."""

_MAX_BACKLOG = 10_000
_VOUCHERS = 500
ORDERS_PER_VOUCHER = 500
_BATCH = 1_000


@dataclass(slots=True)
class _Tally:
    """What a run has done so far, in orders; ``oldest_s``: when the oldest overdue one was made."""

    oldest_s: float
    resent: int = 0
    decided: int = 0


def recover_orders(resend_after_s: float | None = None, decide_after_s: float | None = None) -> int:
    """Recover the orders of all unfinalized sales; return how many were resent or decided.

    ``None`` means the value in the settings. Its jobs are independent: only one needs SQS. Ends
    after about 40 s; the next run begins with another job. Raises the first error of a job after
    all have run: RedisDown, MysqlDown, QueueDown; NotReady.
    """
    if resend_after_s is None:
        resend_after_s = sale_settings().resend_orders_after_s
    if decide_after_s is None:
        decide_after_s = sale_settings().decide_orders_after_s
    deadline, now_s = Deadline.in_s(MAX_RUN_S), clock.now_s()
    tally = _Tally(now_s)

    def decide_spilled() -> None:
        tally.decided += persist.decide_spilled(deadline)

    def recover_pending() -> None:
        _recover_pending(tally, resend_after_s, now_s - decide_after_s, deadline)

    jobs: dict[str, Callable[[], None]] = {
        "decide_spilled": decide_spilled,
        "recover_pending": recover_pending,
        **{
            work.__name__.strip("_"): partial(_run_on_pages, work, deadline)
            for work in (
                _add_to_filter,
                _withdraw_missed,
                _prepare_sales,
                _continue_loading,
                _reconfirm_orders,
                waitlist.recover_waitlists,
            )
        },
    }
    try:
        run_jobs(jobs, run=int(now_s // 60))
    finally:
        age_s = round(clock.now_s() - tally.oldest_s, 1)
        metrics = {"orders_resent": tally.resent, "order_age_s": age_s}
        record("orders_recovered", metrics, decided=tally.decided)
    return tally.resent + tally.decided


def warm_sales(max_s: float) -> None:
    """Load the sales that run or open soon and are not in Redis, for ``max_s``. Safe to repeat.
    Raises MysqlDown, RedisDown."""
    deadline, prepared = Deadline.in_s(max_s), 0
    for vouchers in _read_pages(deadline):
        now_us = clock.now_us()
        prepared += _load_missing(
            [v.id for v in vouchers if v.terms.closes_us > now_us and not v.withdrawn]
        )
    record("warm_up_advanced", {"sales_warmed": prepared})


def _recover_pending(
    tally: _Tally, resend_after_s: float, too_old_s: float, deadline: Deadline
) -> None:
    """Decide overdue pending orders that are too old, and send the others again.

    After an error of SQS orders are only decided. Raises MysqlDown, RedisDown, NotReady; QueueDown
    after all orders.
    """
    is_backlogged, failure = False, None
    try:
        is_backlogged = ORDERS.count_backlog() > _MAX_BACKLOG
    except QueueDown as error:
        failure = error
    for vouchers in _read_pages(deadline):
        sales = list(redis_sales.find_sales([voucher.id for voucher in vouchers]).values())
        while sales and not deadline.has_passed:
            overdue, sales = redis_orders.find_overdue(
                sales, int(resend_after_s * 1e6), ORDERS_PER_VOUCHER
            )
            created_s = [ids.created_at_s(event.order_id) for event in overdue]
            tally.oldest_s = min([tally.oldest_s, *created_s])
            too_old = [e for e, at_s in zip(overdue, created_s, strict=True) if at_s <= too_old_s]
            recent = [e for e, at_s in zip(overdue, created_s, strict=True) if at_s > too_old_s]
            mismatched = []
            for start in range(0, len(too_old), _BATCH):
                mismatched += persist.decide(too_old[start : start + _BATCH]).mismatched
            tally.decided += len(too_old)
            if failure is not None:
                continue
            try:
                persist.send_mismatched(mismatched)
                if not is_backlogged:
                    tally.resent += ORDERS.send_all(recent)
            except QueueDown as error:
                failure = error
    if failure is not None:
        raise failure


def _run_on_pages(work: Callable[[Sequence[Voucher], Deadline], None], deadline: Deadline) -> None:
    """Call ``work`` with each page of vouchers, right after it was read from MySQL."""
    for vouchers in _read_pages(deadline):
        work(vouchers, deadline)


def _read_pages(deadline: Deadline) -> Iterator[list[Voucher]]:
    """Yield the unfinalized vouchers of sales that are open, over or open soon, 500 a statement."""
    after_id = 0
    while not deadline.has_passed and (
        vouchers := mysql_vouchers.read_unfinalized(
            clock.now_us() + PREPARE_US, after_id, _VOUCHERS
        )
    ):
        after_id = vouchers[-1].id
        yield vouchers


def _add_to_filter(vouchers: Sequence[Voucher], _: Deadline) -> None:
    VOUCHER_IDS.add([voucher.id for voucher in vouchers])  # what create_voucher may have missed


def _withdraw_missed(vouchers: Sequence[Voucher], _: Deadline) -> None:
    """Withdraw vouchers in Redis that ``withdraw_vouchers`` missed."""
    withdrawn = [voucher.id for voucher in vouchers if voucher.withdrawn]
    if withdrawn:
        sales = list(redis_sales.find_sales(withdrawn).values())
        if changed := redis_sales.withdraw(sales):
            record("vouchers_withdrawn", withdrawn=changed)


def _prepare_sales(vouchers: Sequence[Voucher], _: Deadline) -> None:
    """Load the sales that open soon and are not in Redis, so that no buyer waits for it."""
    now_us = clock.now_us()
    upcoming = [
        voucher.id
        for voucher in vouchers
        if voucher.terms.opens_us > now_us and not voucher.withdrawn
    ]
    _load_missing(upcoming)


def _load_missing(voucher_ids: Sequence[int]) -> int:
    """Load the sales that are not in Redis; return how many."""
    sales = redis_sales.find_sales(voucher_ids)
    missing = [voucher_id for voucher_id in voucher_ids if voucher_id not in sales]
    for voucher_id in missing:
        _load(voucher_id)
    if missing:
        record("sales_prepared", prepared=len(missing))
    return len(missing)


def _reconfirm_orders(vouchers: Sequence[Voucher], deadline: Deadline) -> None:
    """Acknowledge all orders of the sales of which Redis counts fewer than ``vouchers``: cancelled
    ones, then successes.

    ``vouchers`` were read from MySQL before the counts are read from Redis. So an order committed
    by then and not counted is lost, or is being acknowledged right now. Costs a statement and two
    round trips per 1,000 orders of a sale that differs.
    """
    counts_by_id = redis_sales.read_counts([voucher.id for voucher in vouchers])
    for voucher in vouchers:
        counts = counts_by_id.get(voucher.id)
        if counts is None or not counts.live or not counts.lacks_orders(voucher):
            continue
        adopted = returned = after_id = 0
        if counts.cancelled < voucher.cancelled:
            while not deadline.has_passed and (
                orders := mysql_orders.read_cancelled(voucher.id, after_id, _BATCH)
            ):
                after_id = orders[-1][0]
                returned += _acknowledge(voucher.id, orders, CANCELLED).returned
        after_id = 0
        while not deadline.has_passed and (
            orders := mysql_orders.read_holders(voucher.id, after_id, _BATCH)
        ):
            after_id = orders[-1][1]
            adopted += _acknowledge(voucher.id, orders, None).adopted
        record(
            "orders_reconfirmed",
            {"orders_adopted": adopted, "units_returned": returned},
            voucher_id=voucher.id,
        )


def _acknowledge(
    voucher_id: int, orders: Sequence[tuple[int, int]], reason: str | None
) -> AcknowledgeResult:
    return redis_orders.acknowledge(
        [OrderRow(order_id, voucher_id, buyer_id, reason) for order_id, buyer_id in orders]
    )


def _continue_loading(vouchers: Sequence[Voucher], _: Deadline) -> None:
    """Continue loads that no order continues any more, and read the waitlists of live sales again
    whose node has another term, once their orders were confirmed."""
    counts_by_id = redis_sales.read_counts([voucher.id for voucher in vouchers])
    for voucher in vouchers:
        counts = counts_by_id.get(voucher.id)
        if counts is None:
            continue
        is_current = counts.term == redis_sales.read_term(voucher.id)
        if not counts.live or not (is_current or counts.lacks_orders(voucher)):
            _load(voucher.id)


def _load(voucher_id: int) -> None:
    try:
        load_sale.load_sale(voucher_id)
    except (NotOpen, VoucherWithdrawn, VoucherMissing):
        return
    except Unavailable as error:
        record("sale_load_postponed", voucher_id=voucher_id, **error_fields(error))
