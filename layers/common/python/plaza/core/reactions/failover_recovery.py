"""Repeated acknowledgement, after a failover of Redis, of events that were saved before.

A master that dies or is cut off from its replicas loses the writes that it had not replicated:
outbox entries and their acknowledgements. An event that was saved and acknowledged there is on no
queue and in no outbox any more, and the new master does not have it.

The log in MySQL has all saved events. A run each minute stores the head of the log with the data
of Redis, so that a promoted node has the heads of its own data, and not a deposed master's
that a sweeper still reaches (``redis_failover_progress``). The heads of runs that come sooner are
not kept, because EventBridge delivers an event twice and operators start runs. The run that finds
another term of a master stores the terms, so that consumers that are connected to the master
before do not apply commits to it any more (``term_guard``). Then it acknowledges again all that
was logged since the head before the last one, which is at least one minute before the failover.
"""

from __future__ import annotations

from hashlib import sha256

from plaza.core.reactions import mysql_failover_progress, redis_failover_progress, term_guard
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, Unacknowledged
from plaza.core.reactions.term_guard import Masters
from plaza.infra.jobs.sweeps import Recovery
from plaza.infra.redis import masters
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

MAX_RUN_S = 10
MIN_INTERVAL_S = 45
_PAGE = 1000


def acknowledge_after_failover(max_s: float = MAX_RUN_S) -> int:
    """Queue acknowledgements when a master changed since the last run; return how many events.
    The next run continues after ``max_s``. Raises RedisDown, MysqlDown, QueueDown."""
    of_shards = masters.read_masters(max_age_s=0)
    terms = _digest_terms(of_shards)
    heads = redis_failover_progress.read_heads()  # first: a run beside this one may move them
    progress, head = mysql_failover_progress.read_progress()
    if progress.terms != terms:
        term_guard.store_terms(of_shards)
        progress, head = mysql_failover_progress.read_progress()
    if progress.terms not in (None, terms) and progress.before is not None:
        begin = min([progress.before, *(of_data.before for of_data in heads)])
        # Another failover may have lost what was acknowledged again after the previous one.
        if progress.recovering == terms:
            begin = progress.recovered_seq or 0
        queued, recovered_seq = _acknowledge_again(begin, head, Deadline.in_s(max_s))
        record(
            "failover_detected",
            {"acknowledged_again": queued},
            terms=terms,
            left=head > recovered_seq,
        )
        if recovered_seq < head:
            mysql_failover_progress.record_progress(progress.terms, terms, recovered_seq)
        else:  # what was queued has a minute before the next run moves the heads
            mysql_failover_progress.end_recovery(progress.terms, terms)
        return queued
    if progress.age_s is None or not 0 <= progress.age_s < MIN_INTERVAL_S:
        known = head if progress.last is None else progress.last
        before = min([known, *(of_data.last for of_data in heads)])
        mysql_failover_progress.record_check(progress.terms, terms, before, head)
        redis_failover_progress.record_heads(of_shards, before, head)
    return 0


def _digest_terms(of_shards: Masters) -> int:
    """Return a number that changes with the term of any master, and with the slots of a master."""
    names = sorted({(master.first_slot, master.term) for master in of_shards.values()})
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


RECOVERY = Recovery("acknowledged_again", acknowledge_after_failover)
