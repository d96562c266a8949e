"""Redis is told what MySQL has of shops: of some, or of all, a step at a time."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.shops import SHOPS, read_message, work_through

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Refresh what the messages name, and take each walk through all shops one step further."""
    return consume(event, SHOPS, read_message, work_through, RETRY)
