"""Cancel an unused order in MySQL, then return its unit in Redis.

MySQL decides, under the lock of the voucher: a pending order becomes a cancelled row that its
message finds later; a success becomes cancelled unless it was used. Each cancelled order is also a
row of ``cancelled_order``, so a process that ends after the commit loses nothing: the recovery and
the next load of the sale return the unit.
"""

from __future__ import annotations

from plaza.commerce.flash_sales import (
    mysql_orders,
    mysql_vouchers,
    mysql_waitlist,
    queries,
    redis_orders,
)
from plaza.commerce.flash_sales.model import (
    CANCELLED,
    EXPIRED,
    FAILED,
    MAX_CANCELS,
    USED,
    NotCancellable,
    Order,
    OrderMissing,
    OrderRow,
)
from plaza.core.event_log import append_events
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.observability import current_request_id, record

_REFUSALS = {
    USED: "This order was used.",
    EXPIRED: "This order has expired.",
    FAILED: "This order has failed.",
}


def cancel_order(order_id: int, buyer_id: int) -> Order:
    """Cancel a pending or unused order of a buyer; return it. One transaction of at most eight
    statements, after one round trip for a young order. Safe to repeat.

    Raises NotCancellable; OrderMissing and NotReady as ``queries.read_order``; after MysqlDown and
    RedisDown it may be cancelled: repeat the call.
    """
    order = queries.read_pointed(order_id, buyer_id) or queries.read_order(order_id, buyer_id)
    _require_cancellable(order)  # it may be archived
    row = OrderRow(order_id, order.voucher_id, buyer_id, CANCELLED, current_request_id())
    cancelled = order.status != CANCELLED and mysql.run_in_transaction(
        lambda cursor: _cancel(cursor, row)
    )
    returned = redis_orders.acknowledge([row]).returned
    record("order_cancelled", {"orders_cancelled": int(cancelled), "units_returned": returned})
    return row.order


def _require_cancellable(order: Order) -> None:
    if refusal := _REFUSALS.get(order.status):
        raise NotCancellable(refusal)


def _cancel(cursor: Cursor, row: OrderRow) -> bool:
    """Cancel an order; return False if it was cancelled before."""
    append_events.pass_barrier(cursor)
    mysql_vouchers.lock(cursor, [row.voucher_id])
    stored, cancelled = mysql_orders.read_for_cancelling(cursor, row)
    if stored is not None:
        if stored.identity != row.identity:
            raise OrderMissing(f"Order {row.order_id} does not exist.")
        if stored.is_cancelled:
            return False
        _require_cancellable(stored.order)
    if cancelled >= MAX_CANCELS:
        raise NotCancellable(f"You have cancelled {MAX_CANCELS} orders of this voucher.")
    if stored is None:
        mysql_orders.insert(cursor, [row])
        mysql_vouchers.count_cancelled(cursor, row.voucher_id)
    else:
        mysql_orders.cancel(cursor, row)
    mysql_orders.add_cancelled(cursor, row)
    mysql_waitlist.delete_in(cursor, row.voucher_id, row.buyer_id)  # of an offer it accepted
    mysql_orders.append_to_log(cursor, [row])
    return True
