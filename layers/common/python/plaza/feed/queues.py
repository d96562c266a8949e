"""The queue of timelines to rebuild."""

from __future__ import annotations

from plaza.feed.model import decode_timelines, encode_timelines
from plaza.infra.queues import Queue
from plaza.infra.retries import RetryPolicy

INBOXES = Queue(
    "inboxes",
    encode_timelines,
    decode_timelines,
    batch_size=1,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # the next reader requests the rebuild again
)
