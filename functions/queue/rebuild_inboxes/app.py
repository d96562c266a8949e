"""Inboxes, and lists of stars' posts, that Redis lacks are filled from MySQL."""

from typing import Any

from plaza.feed import INBOXES, read_timelines, rebuild
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy

RETRY = RetryPolicy(max_wait_s=4 * 3_600)  # the next reader asks again


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Rebuild all that readers asked for."""
    return consume(event, INBOXES, read_timelines, rebuild, RETRY)
