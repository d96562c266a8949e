"""What a run found to differ is put right, if it still differs."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.reconciliation import REPAIRS, RepairsAsked, repair

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Correct counters by rows, and Redis by counters."""
    return consume(event, REPAIRS, RepairsAsked.from_json, repair, RETRY)
