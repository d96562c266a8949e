"""Settles that failed when their batch was saved are done again."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.reactions import SETTLEMENTS, Unacknowledged, settle_again


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Tell Redis what MySQL has by now."""
    return consume(event, SETTLEMENTS, Unacknowledged.from_json, settle_again)
