"""Redis, counters and rows are compared in the background, a part of a run at a time."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.reconciliation import COMPARISONS, PartAsked, take_parts

RETRY = RetryPolicy(max_wait_s=4 * 3_600)  # the next night begins anew


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Take each part some steps further."""
    return consume(event, COMPARISONS, PartAsked.from_json, take_parts, RETRY)
