"""The queue of shops whose recommended reviews are to be rebuilt."""

from __future__ import annotations

from plaza.infra.queues.messages import message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.social.recommendations.model import RebuildLists

RECOMMENDATIONS: Queue[RebuildLists] = Queue(
    message_codec("recommendations", RebuildLists),
    max_concurrency=2,
    retention_days=4,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # a schedule requests it again
)
