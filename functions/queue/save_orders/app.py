"""Reservations become orders: successes while there is stock."""

from typing import Any

from plaza.flash_sales import ORDERS, OrderReserved, save
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Save a batch of reservations."""
    return consume(event, ORDERS, OrderReserved.from_json, save, RETRY)
