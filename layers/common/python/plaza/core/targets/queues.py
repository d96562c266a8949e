"""The queue of refreshes and its message."""

from __future__ import annotations

from typing import Annotated

from plaza.core.targets.types import TYPES
from plaza.infra.queues.messages import message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.runtime.codec import ID, Meta, Struct


class TargetRefresh(Struct, frozen=True):
    """A target whose projections in Redis are to be refreshed from MySQL."""

    type: Annotated[str, Meta(pattern=rf"^({'|'.join(TYPES)})\Z")]
    id: ID


REFRESHES: Queue[TargetRefresh] = Queue(
    message_codec("refreshes", TargetRefresh), batch_size=100, window_s=1
)
"""Targets to refresh in Redis; ``refresh`` consumes it."""
