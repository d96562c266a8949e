"""Announcement of a write: Redis is updated even if the writer's process ends after the commit.

The message is delayed for longer than a request may take; by then the write is committed or never
will be. Its consumer (functions/queue/refresh_projections) reads the state from MySQL.
"""

from __future__ import annotations

from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.settings import settings
from plaza.targets.queues import REFRESHES, TargetRefresh


def announce_write(target_type: str, target_id: int) -> bool:
    """Queue a delayed refresh of the target. False, and recorded, without the queue: the write may
    proceed."""
    try:
        REFRESHES.send(TargetRefresh(target_type, target_id), delay_s=settings().announce_delay_s)
    except QueueDown as error:
        record("write_not_announced", {"writes_not_announced": 1}, **error_fields(error))
        return False
    return True
