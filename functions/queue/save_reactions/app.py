"""Reaction events become rows, log and counters."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.reactions import REACTIONS, ReactionEvent, save

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Save a batch of events."""
    return consume(event, REACTIONS, ReactionEvent.from_json, save, RETRY)
