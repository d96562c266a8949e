"""Reservations that could not be saved become failures, unless they were saved after all."""

from typing import Any

from plaza.flash_sales import ORDERS_DLQ, OrderReserved, give_up
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Give up what is in the DLQ of orders."""
    return consume(event, ORDERS_DLQ, OrderReserved.from_json, give_up, RETRY)
