"""The fan-out queue and its message."""

from __future__ import annotations

from typing import Annotated

from plaza.infra.queues.messages import message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.runtime.codec import ID, MAX_ID, Meta, Struct


class FanOut(Struct, frozen=True, omit_defaults=True):
    """Push a post to the page of its author's followers whose ids are above ``after_id``.

    ``announce``: the author has become a celebrity, and the push marks the author as one in the
    inbox.
    """

    post_id: ID
    after_id: Annotated[int, Meta(ge=0, le=MAX_ID)] = 0
    announce: bool = False


FANOUTS: Queue[FanOut] = Queue(message_codec("fanouts", FanOut), max_concurrency=8)
"""One page of followers a message; consumed by the feed."""
