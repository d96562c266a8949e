"""Announcing a write before it is made, so that Redis hears of it whoever dies in between.

The message comes when the write is done or never will be: its delay is longer than a request may
take. Its consumer (functions/queue/refresh_projections) reads what MySQL has by then.
"""

from __future__ import annotations

from plaza.infra.observability import error_fields, record
from plaza.infra.queues import QueueDown
from plaza.targets.queues import REFRESHES, TargetRefresh

DELAY_S = 15


def announce_write(target_type: str, target_id: int) -> bool:
    """Have it refreshed in a moment; False when the queue is away, which is no reason to refuse."""
    try:
        REFRESHES.send(TargetRefresh(target_type, target_id), delay_s=DELAY_S)
    except QueueDown as error:
        record("write_not_announced", {"writes_not_announced": 1}, **error_fields(error))
        return False
    return True
