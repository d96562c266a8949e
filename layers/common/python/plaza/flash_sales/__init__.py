"""Flash sales: limited vouchers, one per buyer, never oversold.

Owns the tables voucher, voucher_order and order_outbox, the queues of orders, and the Redis keys
listed in ``redis_store``, ``voucher_lookup`` and ``filter_build``.
"""

from plaza.flash_sales.model import (
    FAILED,
    PENDING,
    SUCCESS,
    Order,
    OrderEvent,
    Terms,
    Voucher,
    VoucherAvailability,
)

__all__ = [
    "FAILED",
    "PENDING",
    "SUCCESS",
    "Order",
    "OrderEvent",
    "Terms",
    "Voucher",
    "VoucherAvailability",
]
