"""Repeated acknowledgement, after a failover of Redis, of events that were saved before.

A master that dies or is cut off from its replicas loses the writes that it had not replicated:
outbox entries and their acknowledgements. An event that was saved and acknowledged there is on no
queue and in no outbox any more, and the new master does not have it.

The log in MySQL has all saved events. A run each minute keeps the head of the log; the heads of
runs that come sooner are not kept, because EventBridge delivers an event twice and operators start
runs. The run that finds another reign of a master stores the reigns, so that consumers that are
connected to the master before do not apply commits to it any more (``reign_guard``). Then it
acknowledges again all that was logged since the head before the last one, which is at least one
minute before the failover.
"""

from __future__ import annotations

from hashlib import sha256

from plaza.infra.redis import masters
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record
from plaza.reactions import mysql_failover_progress, reign_guard
from plaza.reactions.queues import ACKNOWLEDGEMENTS, Unacknowledged
from plaza.reactions.reign_guard import Masters

MAX_RUN_S = 10
MIN_INTERVAL_S = 45
_PAGE = 1000


def acknowledge_after_failover(max_s: float = MAX_RUN_S) -> int:
    """Queue acknowledgements when a master changed since the last run; return how many events.
    The next run continues after ``max_s``. Raises RedisDown, MysqlDown, QueueDown."""
    of_shards = masters.read_masters(max_age_s=0)
    reigns = _digest_reigns(of_shards)
    progress, head = mysql_failover_progress.read_progress()
    if progress.reigns != reigns:
        reign_guard.store_reigns(of_shards)
        progress, head = mysql_failover_progress.read_progress()
    queued = 0
    if progress.reigns is not None and progress.before is not None and progress.reigns != reigns:
        # Another failover may have lost what was acknowledged again after the previous one.
        begin = progress.recovered_seq if progress.recovering == reigns else progress.before
        queued, recovered_seq = _acknowledge_again(begin or 0, head, Deadline.in_s(max_s))
        record(
            "failover_detected",
            {"acknowledged_again": queued},
            reigns=reigns,
            left=head > recovered_seq,
        )
        if recovered_seq < head:
            mysql_failover_progress.record_progress(reigns, recovered_seq)
            return queued
    if progress.age_s is not None and 0 <= progress.age_s < MIN_INTERVAL_S:
        if progress.reigns != reigns:
            mysql_failover_progress.end_recovery(reigns)
        return queued
    mysql_failover_progress.record_check(
        reigns, head if progress.last is None else progress.last, head
    )
    return queued


def _digest_reigns(of_shards: Masters) -> int:
    """Return a number that changes with the reign of any master, and with the slots of a master."""
    names = sorted({(master.first_slot, master.reign) for master in of_shards.values()})
    return int(sha256(repr(names).encode()).hexdigest()[:15], 16)


def _acknowledge_again(after: int, head: int, deadline: Deadline) -> tuple[int, int]:
    """Return (how many events were queued, the seq of the last one)."""
    queued, recovered_seq = 0, after
    while recovered_seq < head:
        page = mysql_failover_progress.read_log_page(recovered_seq, _PAGE)
        if not page:  # the partition was dropped meanwhile
            return queued, head
        keys = sorted({key for _, key in page})
        ACKNOWLEDGEMENTS.send(Unacknowledged(keys=keys))
        queued, recovered_seq = queued + len(page), page[-1][0]
        if deadline.has_passed:
            break
    return queued, recovered_seq
