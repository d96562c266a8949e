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
from plaza.reactions import mysql_failover_progress
from plaza.reactions.queues import ACKNOWLEDGEMENTS, Unacknowledged

MAX_RUN_S = 10
_PAGE = 1000


def acknowledge_after_failover(max_s: float = MAX_RUN_S) -> int:
    """Ask for settles when a master changed since the last run; how many events they are of.

    What is left after ``max_s`` is asked for by the next run. Raises RedisDown, MysqlDown,
    QueueDown.
    """
    epoch = redis.read_topology_epoch()
    progress, head = mysql_failover_progress.read_progress()
    asked = 0
    if progress.epoch is not None and progress.before is not None and progress.epoch != epoch:
        # Another failover may have taken what was settled again after the one before.
        begin = progress.recovered_seq if progress.recovering_epoch == epoch else progress.before
        asked, recovered_seq = _acknowledge_again(begin or 0, head, Deadline.in_s(max_s))
        record(
            "failover_detected",
            {"acknowledged_again": asked},
            epoch=epoch,
            left=head > recovered_seq,
        )
        if recovered_seq < head:
            mysql_failover_progress.record_progress(epoch, recovered_seq)
            return asked
    mysql_failover_progress.record_check(
        epoch, head if progress.last is None else progress.last, head
    )
    return asked


def _acknowledge_again(after: int, head: int, deadline: Deadline) -> tuple[int, int]:
    """(how many events' settles were asked for, up to which seq)."""
    asked, recovered_seq = 0, after
    while recovered_seq < head:
        page = mysql_failover_progress.read_log_page(recovered_seq, _PAGE)
        if not page:  # its partition was dropped meanwhile
            return asked, head
        keys = sorted({key for _, key in page})
        ACKNOWLEDGEMENTS.send(Unacknowledged(keys=keys))
        asked, recovered_seq = asked + len(page), page[-1][0]
        if deadline.has_passed:
            break
    return asked, recovered_seq
