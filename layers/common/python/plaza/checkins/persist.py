"""Saving: from the queue into MySQL, then telling Redis."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.checkins import mysql_store, redis_store
from plaza.checkins.model import CheckInEvent
from plaza.checkins.queues import CHECKINS
from plaza.infra.mysql import MysqlDown
from plaza.infra.observability import record
from plaza.infra.redis import RedisDown

__all__ = ["CHECKINS", "persist_checkins"]


@CHECKINS.consumer
def persist_checkins(events: Sequence[CheckInEvent]) -> None:
    """Save a batch of events in one statement, then acknowledge it.

    Safe to repeat. Raises MysqlDown, RedisDown; the batch comes again then: a Redis that kept its
    data, but was not told, would show a streak without these days. While MySQL is away, Redis gets
    those that it lost or was never told of: what it shows is whole, and the sweeper sends them
    again even when their messages were given up.
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
