"""The queues of orders: reserved ones, and those that their consumer could not save."""

from __future__ import annotations

from plaza.flash_sales.flash_sales import OrderReserved
from plaza.infra.queues import Queue

ORDERS = Queue(
    "orders", OrderReserved.to_json, OrderReserved.from_json, batch_size=1_000, window_s=1
)

ORDERS_DLQ = Queue(
    "orders_dlq", OrderReserved.to_json, OrderReserved.from_json, batch_size=100, window_s=1
)
"""The dead letters of ORDERS. They are decided too, so it has a consumer and a DLQ of its own."""
