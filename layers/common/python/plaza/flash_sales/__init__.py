"""Flash sales: limited vouchers, one per user, never oversold; orders that are never lost."""

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
