"""Inboxes, and lists of stars' posts, that Redis lacks are filled from MySQL."""

from typing import Any

from plaza.feed import INBOXES, read_timelines, rebuild
from plaza.infra.queues import PartialBatchResponse, consume


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Rebuild all that readers asked for."""
    return consume(event, INBOXES, read_timelines, rebuild)
