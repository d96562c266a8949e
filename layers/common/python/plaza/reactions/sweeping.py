"""Sweeping: entries that stayed in an outbox too long are published again.

That covers an API function that died before the queue, an unavailable queue, and a consumer that
died before Redis was told. A target that misses a commit, or is not loaded and has an outbox, is
loaded from MySQL. The sweep pauses while the queue is behind: a slow consumer must not be fed
duplicates. What the queue refused and MySQL has is sent first, however far behind it is: it was not
sent before.
"""

from __future__ import annotations

import random

from plaza.infra import clock, sqs
from plaza.infra.clock import Deadline
from plaza.infra.mysql import MysqlDown
from plaza.infra.observability import cause, record
from plaza.infra.spill import send_spilled
from plaza.reactions import redis_reactions
from plaza.reactions.queues import REACTIONS
from plaza.reactions.saving import resync

GRACE_US = 30_000_000
LONGEST_WAIT_US = 3_600_000_000
MOST_FACTS = 50_000
MOST_S = 20
_MOST_BACKLOG = 10_000
_TARGETS_PER_SHARD = 2
_TARGETS_PER_ROUND = 100
EVENTS_PER_TARGET = 500


def sweep_outbox(grace_us: int = GRACE_US) -> int:
    """Publish again what has waited longer than ``grace_us``; how many events the queue took.

    At most 50,000 and for 20 s; what is left is due at the next run. Raises RedisDown, QueueDown.
    """
    spilled = _send_spilled()
    waiting = REACTIONS.count_backlog()
    if waiting > _MOST_BACKLOG:
        record("sweep_held_back", {"sweeps_held_back": 1}, backlog=waiting)
        return spilled
    sent, targets, oldest_us, deadline = 0, 0, clock.now_us(), Deadline.in_s(MOST_S)
    while sent < MOST_FACTS and not deadline.has_passed:
        due = redis_reactions.find_due(clock.now_us() - grace_us, _TARGETS_PER_SHARD)
        if not due:
            break
        due = random.sample(due, min(len(due), _TARGETS_PER_ROUND))
        swept = redis_reactions.sweep_all(due, grace_us, EVENTS_PER_TARGET, LONGEST_WAIT_US)
        events = [event for of_target in swept for event in of_target.events]
        sent += REACTIONS.send_all(events)
        targets += len(due)
        oldest_us = min([oldest_us, *(event.stamped for event in events)])
        resync(
            [(s.kind, s.target, s.s) for s in swept if s.code == "GAP"],
            [(s.kind, s.target) for s in swept if s.code == "COLD"],
        )
    sent += spilled
    outbox_age_s = round(clock.now_s() - oldest_us / 1e6, 1)
    record("outbox_swept", {"republished": sent, "outbox_age_s": outbox_age_s}, targets=targets)
    return sent


def _send_spilled() -> int:
    """Send what the queue refused before; returns how many messages it took. Raises QueueDown."""
    try:
        return send_spilled(REACTIONS.name, lambda messages: sqs.send_all(REACTIONS.name, messages))
    except MysqlDown as error:
        record("spilled_postponed", **cause(error))
        return 0
