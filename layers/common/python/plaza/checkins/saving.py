"""Saving: from the queue into MySQL, then telling Redis; and sweeping what the queue never got."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.checkins import mysql_checkins, redis_checkins
from plaza.checkins.checkins import CheckedIn
from plaza.checkins.queues import CHECKINS
from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.mysql import MysqlDown
from plaza.infra.observability import record
from plaza.infra.redis import RedisDown

__all__ = [
    "CHECKINS",
    "GRACE_US",
    "LONGEST_WAIT_US",
    "MOST_FACTS",
    "MOST_S",
    "save",
    "sweep_checkins",
]

GRACE_US = 30_000_000
LONGEST_WAIT_US = 3_600_000_000
MOST_FACTS = 10_000
MOST_S = 10
_MOST_BACKLOG = 10_000
_USERS_PER_SHARD = 10


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


def sweep_checkins(grace_us: int = GRACE_US) -> int:
    """Publish again what has waited longer than ``grace_us``; how many facts the queue took.

    At most 10,000 or so and for 10 s; what is left is due at the next run. Holds back while the
    queue is behind. Raises RedisDown, QueueDown.
    """
    waiting = CHECKINS.count_backlog()
    if waiting > _MOST_BACKLOG:
        record("checkins_held_back", {"checkin_sweeps_held_back": 1}, backlog=waiting)
        return 0
    sent, oldest_us, deadline = 0, clock.now_us(), Deadline.in_s(MOST_S)
    while sent < MOST_FACTS and not deadline.has_passed:
        due = redis_checkins.find_dirty(clock.now_us() - grace_us, _USERS_PER_SHARD)
        if not due:
            break
        facts = redis_checkins.sweep_all(due, grace_us, LONGEST_WAIT_US)
        sent += CHECKINS.send_all(facts, deadline)
        oldest_us = min([oldest_us, *(fact.ver_us for fact in facts)])
    age_s = round(clock.now_s() - oldest_us / 1e6, 1)
    record("checkins_swept", {"checkins_republished": sent, "checkin_outbox_age_s": age_s})
    return sent
