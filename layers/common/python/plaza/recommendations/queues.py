"""The queue of shops whose lists of recommended reviews are to be made again."""

from __future__ import annotations

from plaza.infra.queues import Queue
from plaza.infra.retries import RetryPolicy
from plaza.recommendations.recommendations import Rebuild

RECOMMENDATIONS = Queue(
    "recommendations",
    Rebuild.to_json,
    Rebuild.from_json,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # a schedule asks again
)
