"""Reservations become orders: successes while there is stock."""

from typing import Any

from plaza.flash_sales import ORDERS, OrderReserved, save
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy

# A buyer waits for each of them: short at first.
RETRY = RetryPolicy(max_wait_s=12 * 3_600, back_off_s=(1, 2, 3, 3, 3, 3, 3, 3, 5, 10, 30, 120, 600))


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Save a batch of reservations."""
    return consume(event, ORDERS, OrderReserved.from_json, save, RETRY)
