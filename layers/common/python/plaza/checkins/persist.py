"""Store check-ins from the queue in MySQL, then acknowledge them to Redis."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.checkins import mysql_store, redis_store
from plaza.checkins.model import CheckInEvent
from plaza.checkins.queues import CHECKINS
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.observability import record

__all__ = ["CHECKINS", "persist_checkins"]


@CHECKINS.consumer
def persist_checkins(events: Sequence[CheckInEvent]) -> None:
    """Store a batch in one statement, then acknowledge it. Safe to repeat.

    Raises MysqlDown, RedisDown: retry the batch, because without the acknowledgement Redis may
    serve a streak that lacks these days. While MySQL is unavailable, days that Redis lacks are
    added to the outboxes: reads are complete, and the sweeper resends dead-lettered events.
    """
    if not events:
        return
    try:
        inserted = mysql_store.insert(events)
    except MysqlDown:
        with suppress(RedisDown):
            added = redis_store.add_to_outboxes(events)
            record("checkins_added_to_outbox", {"checkins_added_to_outbox": added})
        raise
    invalidated = redis_store.acknowledge_all(events)
    metrics = {"accepted": len(events), "inserted": inserted, "invalidated": invalidated}
    record("checkins_saved", metrics)
