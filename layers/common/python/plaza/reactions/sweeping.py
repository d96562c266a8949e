"""Sweeping: what stayed in an outbox too long is published again.

That covers an API function that died before the queue, a queue that was away, and a consumer that
died before it settled. It holds back while the queue is behind: a slow consumer must not be fed
duplicates.
"""

from __future__ import annotations

import random
import time

from plaza.infra import queues
from plaza.infra.observability import record
from plaza.reactions import redis_reactions
from plaza.reactions.reacting import REACTIONS

GRACE_US = 30_000_000
LONGEST_WAIT_US = 3_600_000_000
MOST_FACTS = 50_000
MOST_S = 40
_MOST_BACKLOG = 10_000
_TARGETS_PER_SHARD = 2
_TARGETS_PER_ROUND = 100
_FACTS_PER_TARGET = 500


def sweep_outbox(grace_us: int = GRACE_US) -> int:
    """Publish again what has waited longer than ``grace_us``; how many facts the queue took.

    At most 50,000 and for 40 s; what is left is due at the next run. Raises RedisDown, QueueDown.
    """
    waiting = queues.backlog(REACTIONS)
    if waiting > _MOST_BACKLOG:
        record("sweep_held_back", {"sweeps_held_back": 1}, backlog=waiting)
        return 0
    sent, targets, oldest_us, began_s = 0, 0, time.time_ns() // 1000, time.monotonic()
    while sent < MOST_FACTS and time.monotonic() - began_s < MOST_S:
        due = redis_reactions.find_dirty(time.time_ns() // 1000 - grace_us, _TARGETS_PER_SHARD)
        if not due:
            break
        due = random.sample(due, min(len(due), _TARGETS_PER_ROUND))
        facts = redis_reactions.sweep_all(due, grace_us, _FACTS_PER_TARGET, LONGEST_WAIT_US)
        sent += queues.send_all(REACTIONS, [fact.to_json() for fact in facts])
        targets += len(due)
        oldest_us = min([oldest_us, *(fact.ver_us for fact in facts)])
    outbox_age_s = round(time.time() - oldest_us / 1e6, 1)
    record("outbox_swept", {"republished": sent, "outbox_age_s": outbox_age_s}, targets=targets)
    return sent
