"""What was changed in MySQL is let go of in Redis a second time: it may have been refilled."""

from typing import Any

from plaza.infra.cache import DROPS, Drops, drop_again
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Let go of all that the messages name."""
    return consume(event, DROPS, Drops.from_json, drop_again, RETRY)
