"""Flash sales: limited vouchers, one per user, never oversold; orders that are never lost."""

from plaza.flash_sales.flash_sales import (
    FAILED,
    PENDING,
    SUCCESS,
    Attempt,
    Order,
    OrderReserved,
    Terms,
    Voucher,
)
from plaza.flash_sales.offering import offer, withdraw_offers
from plaza.flash_sales.ordering import forget_sales, order
from plaza.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.flash_sales.reading import Offer, list_orders, list_vouchers, read_order
from plaza.flash_sales.recovering import recover_orders
from plaza.flash_sales.redis_vouchers import state_key
from plaza.flash_sales.saving import give_up, save
from plaza.flash_sales.settling import settle_vouchers
from plaza.flash_sales.voucher_filter import build_filter
from plaza.flash_sales.waiting import poll_after_s

__all__ = [
    "FAILED",
    "ORDERS",
    "ORDERS_DLQ",
    "PENDING",
    "SUCCESS",
    "Attempt",
    "Offer",
    "Order",
    "OrderReserved",
    "Terms",
    "Voucher",
    "build_filter",
    "forget_sales",
    "give_up",
    "list_orders",
    "list_vouchers",
    "offer",
    "order",
    "poll_after_s",
    "read_order",
    "recover_orders",
    "save",
    "settle_vouchers",
    "state_key",
    "withdraw_offers",
]
