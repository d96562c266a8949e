"""The queue of reserved orders and its dead-letter queue."""

from __future__ import annotations

from plaza.flash_sales.model import OrderEvent
from plaza.infra.queues import Queue
from plaza.infra.retries import RetryPolicy

ORDERS = Queue(
    "orders",
    OrderEvent.to_json,
    OrderEvent.from_json,
    batch_size=1_000,
    window_s=1,
    visibility_s=61,
    # The first delays are short because a buyer waits for each order.
    retry=RetryPolicy(back_off_s=(1, 2, 3, 3, 3, 3, 3, 3, 5, 10, 30, 120, 600)),
)

ORDERS_DLQ = Queue(
    "orders_dlq", OrderEvent.to_json, OrderEvent.from_json, batch_size=100, window_s=1
)
"""The dead letters of ORDERS. They are decided too, so it has a consumer and its own DLQ."""
