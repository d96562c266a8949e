"""After a failover of a cluster, what was saved shortly before is settled again.

A master that dies, or that was cut off from its replicas, takes with it what it had not replicated:
changes, and the settles of those changes. A change that was saved and settled there is on no queue
and in no outbox any more, and the new master has never heard of it.

The log in MySQL knows what was saved. Each run notes how far it is; the run that finds another
epoch of the cluster goes through all that was logged since the run before the last, a minute before
the failover at least.
"""

from __future__ import annotations

from plaza.infra import redis
from plaza.infra.clock import Deadline
from plaza.infra.observability import record
from plaza.reactions import mysql_failovers
from plaza.reactions.queues import SETTLEMENTS, Unacknowledged

MOST_S = 10
_PAGE = 1000


def settle_after_failover(most_s: float = MOST_S) -> int:
    """Ask for settles when a master changed since the last run; how many facts they are of.

    What is left after ``most_s`` is asked for by the next run. Raises RedisDown, MysqlDown,
    QueueDown.
    """
    epoch = redis.read_epoch()
    looks, head = mysql_failovers.read_looks()
    asked = 0
    if looks.epoch is not None and looks.before is not None and looks.epoch != epoch:
        # Another failover may have taken what was settled again after the one before.
        begin = looks.reached if looks.settling == epoch else looks.before
        asked, reached = _settle_again(begin or 0, head, Deadline.in_s(most_s))
        record("failover_noticed", {"settled_again": asked}, epoch=epoch, left=head > reached)
        if reached < head:
            mysql_failovers.keep_reached(epoch, reached)
            return asked
    mysql_failovers.keep_look(epoch, head if looks.last is None else looks.last, head)
    return asked


def _settle_again(after: int, head: int, deadline: Deadline) -> tuple[int, int]:
    """(how many facts' settles were asked for, up to which seq)."""
    asked, reached = 0, after
    while reached < head:
        page = mysql_failovers.read_logged(reached, _PAGE)
        if not page:  # its partition was dropped meanwhile
            return asked, head
        keys = sorted({key for _, key in page})
        SETTLEMENTS.send(Unacknowledged(keys=keys))
        asked, reached = asked + len(page), page[-1][0]
        if deadline.has_passed:
            break
    return asked, reached
