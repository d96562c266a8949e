"""Flash sales: limited vouchers, one per user, never oversold; orders that are never lost."""

from plaza.flash_sales.flash_sales import (
    FAILED,
    PENDING,
    SUCCESS,
    Offer,
    Order,
    OrderReserved,
    Terms,
    Voucher,
)

__all__ = [
    "FAILED",
    "PENDING",
    "SUCCESS",
    "Offer",
    "Order",
    "OrderReserved",
    "Terms",
    "Voucher",
]
