"""What was announced before it was written is told to Redis, as MySQL has it by now."""

from typing import Any

from plaza.content import refresh
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.targets import REFRESHES, Refresh

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Refresh all that the messages name."""
    return consume(event, REFRESHES, Refresh.from_json, refresh, RETRY)
