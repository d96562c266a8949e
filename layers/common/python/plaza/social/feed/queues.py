"""The queue of timelines to rebuild."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from plaza.infra.queues.messages import message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.runtime.codec import Meta
from plaza.social.feed.model import MAX_TIMELINES, Timeline

INBOXES: Queue[Sequence[Timeline]] = Queue(
    message_codec(
        "inboxes", Annotated[list[Timeline], Meta(min_length=1, max_length=MAX_TIMELINES)]
    ),
    batch_size=1,
    max_concurrency=8,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # the next reader requests the rebuild again
)
