"""Settles that failed when their batch was saved are done again."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.reactions import SETTLEMENTS, Unacknowledged, settle_again

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Tell Redis what MySQL has by now."""
    return consume(event, SETTLEMENTS, Unacknowledged.from_json, settle_again, RETRY)
