"""Recovering: orders that have been pending too long are sent again, and in the end decided here.

That covers an API function that died before the queue, a queue that was away, and a consumer that
died before it told Redis. It is no outbox of ``infra.outbox``: the pending orders of a voucher are
an index of their own, MySQL names the vouchers, and an order that waits for too long is decided
instead of sent. What is sent again holds back while the queue itself is behind. Orders that SQS did
not take are decided here, and so are those that wait for too long, by stock as ever. A node of
Redis that went on without the last commands of another one (an unreplicated failover, a restart
with older data) lacks orders that nothing sends again: it is told all that MySQL has of the sale.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.flash_sales import load_sale, mysql_orders, mysql_vouchers, persist, redis_store
from plaza.flash_sales.model import NotOpen, OrderRow, Voucher, VoucherMissing, VoucherWithdrawn
from plaza.flash_sales.queues import ORDERS
from plaza.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.infra import clock, ids
from plaza.infra.clock import Deadline
from plaza.infra.errors import Unavailable
from plaza.infra.observability import error_fields, record
from plaza.infra.settings import settings

MAX_RUN_S = 40
_MAX_BACKLOG = 10_000
_VOUCHERS = 500
ORDERS_PER_VOUCHER = 500
_BATCH = 1_000


def recover_orders(resend_after_s: float | None = None, decide_after_s: float | None = None) -> int:
    """Look once at all sales that aren't finalized; how many orders were sent again or decided.

    ``None``: as the settings say. For about 40 s; what is left is due at the next run. Raises
    RedisDown, MysqlDown, QueueDown; NotReady.
    """
    if resend_after_s is None:
        resend_after_s = settings().resend_orders_after_s
    if decide_after_s is None:
        decide_after_s = settings().decide_orders_after_s
    deadline, too_old_s = Deadline.in_s(MAX_RUN_S), clock.now_s() - decide_after_s
    decided_late = persist.decide_outbox(deadline)
    behind = ORDERS.count_backlog() > _MAX_BACKLOG
    resent = after_id = 0
    oldest_s = clock.now_s()
    while not deadline.has_passed:
        vouchers = mysql_vouchers.read_unfinalized(clock.now_us(), after_id, _VOUCHERS)
        if not vouchers:
            break
        after_id = vouchers[-1].id
        voucher_ids = [voucher.id for voucher in vouchers]
        VOUCHER_IDS.add(voucher_ids)  # whoever made one may have died before that
        _withdraw_of_deleted_shops(vouchers)
        _continue_loading(voucher_ids)
        more = True
        while more and not deadline.has_passed:
            sales = list(redis_store.find_sales(voucher_ids).values())
            found = redis_store.find_overdue(sales, int(resend_after_s * 1e6), ORDERS_PER_VOUCHER)
            more = len(found) >= ORDERS_PER_VOUCHER
            too_old = [event for event in found if ids.created_at_s(event.order_id) <= too_old_s]
            for start in range(0, len(too_old), _BATCH):
                decided = persist.decide(too_old[start : start + _BATCH])
                persist.send_mismatched(decided.mismatched)
            if not behind:
                again = [f for f in found if ids.created_at_s(f.order_id) > too_old_s]
                resent += ORDERS.send_all(again)
            decided_late += len(too_old)
            oldest_s = min([oldest_s, *(ids.created_at_s(event.order_id) for event in found)])
        _reconfirm_orders(vouchers, deadline)
    age_s = round(clock.now_s() - oldest_s, 1)
    record(
        "orders_recovered", {"orders_resent": resent, "order_age_s": age_s}, decided=decided_late
    )
    return resent + decided_late


def _withdraw_of_deleted_shops(vouchers: Sequence[Voucher]) -> None:
    """Withdraw what deleted shops offer: whoever deleted them may have died before that."""
    shop_deleted = [voucher.id for voucher in vouchers if voucher.shop_deleted]
    if shop_deleted:
        sales = list(redis_store.find_sales(shop_deleted).values())
        if withdrawn := redis_store.withdraw(sales, shop_deleted=True):
            record("vouchers_withdrawn", withdrawn=withdrawn)


def _reconfirm_orders(vouchers: Sequence[Voucher], deadline: Deadline) -> None:
    """Confirm all orders of the sales of which Redis counts fewer than MySQL did before.

    ``vouchers`` were read from MySQL before the pending orders were read. So what was committed by
    then and is neither pending nor counted is lost, or is being confirmed right now. A sale costs a
    statement and two round trips for each 1,000 orders, and only while it differs.
    """
    counts = redis_store.read_counts([voucher.id for voucher in vouchers])
    for voucher in vouchers:
        seen, decided = counts.get(voucher.id), voucher.terms.stock - voucher.stock
        if seen is None or not seen.live or seen.sold >= decided:
            continue
        adopted = buyer_id = 0
        while not deadline.has_passed:
            holders = mysql_orders.read_holders(voucher.id, buyer_id, _BATCH)
            if not holders:
                break
            buyer_id = holders[-1][1]
            rows = [OrderRow(order, voucher.id, buyer, None) for order, buyer in holders]
            adopted += redis_store.acknowledge(rows).adopted
        record("orders_reconfirmed", {"orders_adopted": adopted}, voucher_id=voucher.id)


def _continue_loading(voucher_ids: list[int]) -> None:
    """Sales whose state began to come back, and nobody clicks on any more."""
    for voucher_id, seen in redis_store.read_counts(voucher_ids).items():
        if not seen.live:
            try:
                load_sale.load_sale(voucher_id)
            except (NotOpen, VoucherWithdrawn, VoucherMissing):
                continue
            except Unavailable as error:
                record("sale_load_postponed", voucher_id=voucher_id, **error_fields(error))
