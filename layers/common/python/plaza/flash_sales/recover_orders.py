"""Send overdue pending orders again, and decide those that are too old.

It covers an API function that ended before it sent an order, an unavailable queue, and a consumer
that ended before it acknowledged. Nothing is resent while the queue has a long backlog. Orders that
SQS refused and orders that are too old are decided here, by stock. After an unreplicated failover
or a restart with older data, Redis lacks successes that no message repeats: all successes of the
sale are then acknowledged again. ``infra.outbox`` is not used: MySQL lists the vouchers, their
pending orders are an index already, and old orders are decided instead of sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.flash_sales import (
    load_sale,
    mysql_orders,
    mysql_vouchers,
    persist,
    redis_store,
    waitlist,
)
from plaza.flash_sales.model import (
    CANCELLED,
    NotOpen,
    OrderRow,
    Voucher,
    VoucherMissing,
    VoucherWithdrawn,
)
from plaza.flash_sales.queues import ORDERS
from plaza.flash_sales.redis_store import AcknowledgeResult
from plaza.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.infra import clock, ids
from plaza.infra.clock import Deadline
from plaza.infra.errors import Unavailable
from plaza.infra.observability import error_fields, record
from plaza.infra.settings import settings

MAX_RUN_S = 40
PREPARE_US = 600_000_000
"""How long before a sale opens its state is loaded, if it is not in Redis."""

_MAX_BACKLOG = 10_000
_VOUCHERS = 500
ORDERS_PER_VOUCHER = 500
_BATCH = 1_000


def recover_orders(resend_after_s: float | None = None, decide_after_s: float | None = None) -> int:
    """Recover the orders of all unfinalized sales; return how many were resent or decided.

    ``None`` means the value in the settings. Ends after about 40 s; the next run continues. Raises
    RedisDown, MysqlDown, QueueDown; NotReady.
    """
    if resend_after_s is None:
        resend_after_s = settings().resend_orders_after_s
    if decide_after_s is None:
        decide_after_s = settings().decide_orders_after_s
    deadline, too_old_s = Deadline.in_s(MAX_RUN_S), clock.now_s() - decide_after_s
    decided_late = persist.decide_outbox(deadline)
    is_backlogged = ORDERS.count_backlog() > _MAX_BACKLOG
    resent = after_id = 0
    oldest_s = clock.now_s()
    while not deadline.has_passed:
        opening_us = clock.now_us() + PREPARE_US
        vouchers = mysql_vouchers.read_unfinalized(opening_us, after_id, _VOUCHERS)
        if not vouchers:
            break
        after_id = vouchers[-1].id
        voucher_ids = [voucher.id for voucher in vouchers]
        VOUCHER_IDS.add(voucher_ids)  # repeats what create_voucher may have missed
        _withdraw_missed(vouchers)
        _prepare_sales(vouchers)
        _continue_loading(voucher_ids)
        sales = list(redis_store.find_sales(voucher_ids).values())
        while sales and not deadline.has_passed:
            found, sales = redis_store.find_overdue(
                sales, int(resend_after_s * 1e6), ORDERS_PER_VOUCHER
            )
            too_old = [event for event in found if ids.created_at_s(event.order_id) <= too_old_s]
            for start in range(0, len(too_old), _BATCH):
                decided = persist.decide(too_old[start : start + _BATCH])
                persist.send_mismatched(decided.mismatched)
            if not is_backlogged:
                overdue = [event for event in found if ids.created_at_s(event.order_id) > too_old_s]
                resent += ORDERS.send_all(overdue)
            decided_late += len(too_old)
            oldest_s = min([oldest_s, *(ids.created_at_s(event.order_id) for event in found)])
        _reconfirm_orders(vouchers, deadline)
        waitlist.recover_waitlists(vouchers, deadline)
    age_s = round(clock.now_s() - oldest_s, 1)
    record(
        "orders_recovered", {"orders_resent": resent, "order_age_s": age_s}, decided=decided_late
    )
    return resent + decided_late


def _withdraw_missed(vouchers: Sequence[Voucher]) -> None:
    """Withdraw vouchers in Redis that ``withdraw_vouchers`` missed."""
    withdrawn = [voucher.id for voucher in vouchers if voucher.withdrawn]
    if withdrawn:
        sales = list(redis_store.find_sales(withdrawn).values())
        if changed := redis_store.withdraw(sales):
            record("vouchers_withdrawn", withdrawn=changed)


def _prepare_sales(vouchers: Sequence[Voucher]) -> None:
    """Load the sales that open soon and are not in Redis, so that no buyer waits for it."""
    now_us = clock.now_us()
    upcoming = [
        voucher.id
        for voucher in vouchers
        if voucher.terms.opens_us > now_us and not voucher.withdrawn
    ]
    if not upcoming:
        return
    found = redis_store.find_sales(upcoming)
    missing = [voucher_id for voucher_id in upcoming if voucher_id not in found]
    for voucher_id in missing:
        _load(voucher_id)
    if missing:
        record("sales_prepared", prepared=len(missing))


def _reconfirm_orders(vouchers: Sequence[Voucher], deadline: Deadline) -> None:
    """Acknowledge all orders of the sales of which Redis counts fewer than ``vouchers``: cancelled
    ones, then successes.

    ``vouchers`` were read from MySQL before the pending orders were read from Redis. So an order
    committed by then and neither pending nor counted is lost, or is being acknowledged right now.
    Cancelled orders only grow, and so do successes and cancelled orders together. Costs a statement
    and two round trips per 1,000 orders of a sale that differs.
    """
    counts_by_id = redis_store.read_counts([voucher.id for voucher in vouchers])
    for voucher in vouchers:
        counts, sold = counts_by_id.get(voucher.id), voucher.terms.stock - voucher.stock
        if counts is None or not counts.live:
            continue
        adopted = returned = after_id = 0
        if counts.cancelled < voucher.cancelled:
            while not deadline.has_passed and (
                orders := mysql_orders.read_cancelled(voucher.id, after_id, _BATCH)
            ):
                after_id = orders[-1][0]
                returned += _acknowledge(voucher.id, orders, CANCELLED).returned
        elif counts.sold + counts.cancelled >= sold + voucher.cancelled:
            continue
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
    return redis_store.acknowledge(
        [OrderRow(order_id, voucher_id, buyer_id, reason) for order_id, buyer_id in orders]
    )


def _continue_loading(voucher_ids: list[int]) -> None:
    """Continue loads that no order continues any more."""
    for voucher_id, counts in redis_store.read_counts(voucher_ids).items():
        if not counts.live:
            _load(voucher_id)


def _load(voucher_id: int) -> None:
    try:
        load_sale.load_sale(voucher_id)
    except (NotOpen, VoucherWithdrawn, VoucherMissing):
        return
    except Unavailable as error:
        record("sale_load_postponed", voucher_id=voucher_id, **error_fields(error))
