"""After a failover of a cluster, what was saved shortly before is settled again.

A master that dies, or that was cut off from its replicas, takes with it what it had not replicated:
changes, and the settles of those changes. A change that was saved and settled there is on no queue
and in no outbox any more, and the new master has never heard of it.

The log in MySQL knows what was saved. Each run notes how far it is; the run that finds another
epoch of the cluster goes through all that was logged since the run before the last, a minute before
the failover at least.
"""

from __future__ import annotations

import json
import time

from plaza.infra import queues, redis
from plaza.infra.observability import record
from plaza.reactions import mysql_failovers
from plaza.reactions.saving import SETTLEMENTS

MOST_S = 10
_PAGE = 1000
_EPOCH, _BEFORE, _LAST = "redis_epoch", "redis_before", "redis_last"


def settle_after_failover(most_s: float = MOST_S) -> int:
    """Ask for settles when a master changed since the last run; how many facts they are of.

    What is left after ``most_s`` is asked for by the next run. Of a single Redis nothing is known,
    and nothing done. Raises RedisDown, MysqlDown, QueueDown.
    """
    epoch = redis.read_epoch()
    if epoch is None:
        return 0
    marks = mysql_failovers.read_marks((_EPOCH, _BEFORE, _LAST))
    head, asked = marks["log"], 0
    if marks.get(_EPOCH, epoch) != epoch:
        until_s, reached = time.monotonic() + most_s, marks[_BEFORE]
        while reached < head:
            page = mysql_failovers.read_logged(reached, _PAGE)
            if not page:  # its partition was dropped meanwhile
                reached = head
                break
            keys = sorted({key for _, key in page})
            queues.send(SETTLEMENTS, json.dumps(keys, separators=(",", ":")))
            asked, reached = asked + len(page), page[-1][0]
            if reached < head and time.monotonic() >= until_s:
                mysql_failovers.keep_marks({_BEFORE: reached})
                break
        record("failover_noticed", {"settled_again": asked}, epoch=epoch, left=head > reached)
        if reached < head:
            return asked
    mysql_failovers.keep_marks({_EPOCH: epoch, _BEFORE: marks.get(_LAST, head), _LAST: head})
    return asked
