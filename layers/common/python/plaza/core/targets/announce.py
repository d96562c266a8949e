"""Announcement of a write: Redis is updated even if the writer's process ends after the commit.

The message is delayed for longer than a request may take; by then the write is committed or never
will be. Its consumer (functions/queue/refresh_projections) reads the state from MySQL.
"""

from __future__ import annotations

from plaza.core.targets.queues import REFRESHES, TargetRefresh
from plaza.infra.runtime.settings import settings


def announce_write(target_type: str, target_id: int) -> bool:
    """Queue a delayed refresh of the target. Return False if SQS refuses: the write may proceed."""
    refresh = TargetRefresh(target_type, target_id)
    return REFRESHES.try_send(refresh, delay_s=settings().announce_delay_s)
