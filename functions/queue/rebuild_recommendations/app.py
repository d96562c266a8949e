"""The recommended reviews of shops are read from MySQL and put in place."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.recommendations import RECOMMENDATIONS, Rebuild, rebuild_recommendations

RETRY = RetryPolicy(max_wait_s=4 * 3_600)  # a schedule asks again


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Make the lists of a batch of shops."""
    return consume(event, RECOMMENDATIONS, Rebuild.from_json, rebuild_recommendations, RETRY)
