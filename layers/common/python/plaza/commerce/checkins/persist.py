"""Store check-ins from the queue in MySQL, then acknowledge them to Redis."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.commerce.checkins import mysql_store, redis_store
from plaza.commerce.checkins.model import CheckInEvent
from plaza.commerce.checkins.queues import CHECKINS
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues import save_rate
from plaza.infra.queues.retries import at_step
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.observability import record

__all__ = ["CHECKINS", "persist_checkins"]

_ACKNOWLEDGE = "acknowledge"


@CHECKINS.consumer
def persist_checkins(events: Sequence[CheckInEvent]) -> None:
    """Store a batch in one statement, then acknowledge it. Safe to repeat.

    Raises MysqlDown; Busy as ``save_rate``: retry the batch; RedisDown: it resumes with the
    acknowledgement, without which Redis may serve a streak that lacks these days. While MySQL is
    unavailable, days that Redis lacks are added to the outboxes: reads are complete, and the
    sweeper resends dead-lettered events.
    """
    if not events:
        return
    save_rate.wait_for_turn(len(events))
    try:
        inserted = mysql_store.insert(events)
    except MysqlDown:
        with suppress(RedisDown):
            added = redis_store.add_to_outboxes(events)
            record("checkins_added_to_outbox", {"checkins_added_to_outbox": added})
        raise
    record("checkins_saved", {"accepted": len(events), "inserted": inserted})
    acknowledge(events)


@CHECKINS.resumes_at(_ACKNOWLEDGE)
def acknowledge(events: Sequence[CheckInEvent]) -> None:
    """Acknowledge stored days. Safe to repeat. Raises RedisDown: retry the acknowledgement."""
    with at_step(_ACKNOWLEDGE):
        invalidated = redis_store.acknowledge_all(events)
    record("checkins_acknowledged", {"invalidated": invalidated})
