"""Check-ins that were accepted become rows."""

from typing import Any

from plaza.checkins import CHECKINS, CheckedIn, save
from plaza.infra.queues import PartialBatchResponse, consume


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Save a batch of facts."""
    return consume(event, CHECKINS, CheckedIn.from_json, save)
