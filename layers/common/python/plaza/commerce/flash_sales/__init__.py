"""Vouchers: limited, one per buyer, never oversold; in flash sales or without an end.

Owns the tables voucher, voucher_order, cancelled_order, redemption, waitlist_entry and
order_outbox, the queues of orders, and the Redis keys listed in ``redis_keys``, ``voucher_lookup``
and ``filter_build``. Operators use ``inspection`` and ``recover_orders``, pushes ``outcomes``.
"""

from plaza.commerce.flash_sales.model import (
    CANCELLED,
    EXPIRED,
    FAILED,
    PENDING,
    SUCCESS,
    USED,
    Order,
    OrderEvent,
    Terms,
    Voucher,
    VoucherAvailability,
)

__all__ = [
    "CANCELLED",
    "EXPIRED",
    "FAILED",
    "PENDING",
    "SUCCESS",
    "USED",
    "Order",
    "OrderEvent",
    "Terms",
    "Voucher",
    "VoucherAvailability",
    "inspection",
    "outcomes",
    "recover_orders",
]
