"""Posts are pushed to the inboxes of followers, a page of them a message."""

from typing import Any

from plaza.content import FANOUTS
from plaza.feed import FanOut, fan_out
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Push each post one page further."""
    return consume(event, FANOUTS, FanOut.from_json, fan_out, RETRY)
