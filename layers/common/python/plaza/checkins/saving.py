"""Saving: from the queue into MySQL, then telling Redis."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.checkins import mysql_checkins, redis_checkins
from plaza.checkins.checkins import CheckedIn
from plaza.checkins.queues import CHECKINS
from plaza.infra.mysql import MysqlDown
from plaza.infra.observability import record
from plaza.infra.redis import RedisDown

__all__ = ["CHECKINS", "save"]


@CHECKINS.consumer
def save(facts: Sequence[CheckedIn]) -> None:
    """Save a batch of facts in one statement, then settle it.

    Safe to repeat. Raises MysqlDown, RedisDown; the batch comes again then: a Redis that kept its
    data, but was not told, would show a streak without these days. While MySQL is away, Redis gets
    those that it lost or was never told of: what it shows is whole, and the sweeper sends them
    again even when their messages were given up.
    """
    if not facts:
        return
    try:
        inserted = mysql_checkins.save(facts)
    except MysqlDown:
        with suppress(RedisDown):
            adopted = redis_checkins.adopt_all(facts)
            record("checkins_adopted", {"checkins_adopted": adopted})
        raise
    forgotten = redis_checkins.settle_all(facts)
    metrics = {"accepted": len(facts), "inserted": inserted, "forgotten": forgotten}
    record("checkins_saved", metrics)
