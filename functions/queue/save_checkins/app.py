"""Check-ins that were accepted become rows."""

from typing import Any

from plaza.checkins import CHECKINS, CheckedIn, save
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Save a batch of facts."""
    return consume(event, CHECKINS, CheckedIn.from_json, save, RETRY)
