"""Reaction events become rows, log and counters."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.reactions import REACTIONS, ReactionEvent, save


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Save a batch of events."""
    return consume(event, REACTIONS, ReactionEvent.from_json, save)
