"""What a run found to differ is put right, if it still differs."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.reconciliation import REPAIRS, RepairsAsked, repair


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Correct counters by rows, and Redis by counters."""
    return consume(event, REPAIRS, RepairsAsked.from_json, repair)
