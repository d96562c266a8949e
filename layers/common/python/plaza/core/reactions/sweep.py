"""The sweep: send outbox entries again that were not acknowledged in time
(``infra.derived.outbox``).

A target that misses a commit, or that has an outbox and is not loaded, is hydrated. The sweep
pauses while the queue has a large backlog, because a slow consumer must not get duplicates. Events
that were spilled to MySQL are sent first in any case: they were never on the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from plaza.core.reactions import redis_outbox
from plaza.core.reactions.acknowledgement import resync
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import Target
from plaza.core.reactions.queues import FOLLOWS, REACTIONS
from plaza.core.reactions.redis_keys import outboxes_key
from plaza.core.reactions.redis_outbox import SweptTarget
from plaza.infra.contexts import offers
from plaza.infra.derived import outbox
from plaza.infra.derived.outbox import MAX_BACKLOG, MAX_WAIT_US
from plaza.infra.jobs.sweeps import Sweep
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues import sqs
from plaza.infra.queues.spill import send_spilled
from plaza.infra.runtime.observability import error_fields, record

MAX_EVENTS = 50_000
MAX_RUN_S = 20
_TARGETS_PER_SHARD = 400
EVENTS_PER_TARGET = 500


def sweep_outbox(
    resend_after_us: int | None = None, *, everything: bool = False, max_s: float = MAX_RUN_S
) -> int:
    """Send entries again that waited longer than ``resend_after_us``; return how many the queue
    accepted.

    ``resend_after_us`` None: the parameter ``ResendAfter``. ``everything``: send each entry, also
    one that was swept a moment ago or while the backlog is long. At most 50,000 events and
    ``max_s`` a run; the next run continues. Raises RedisDown, QueueDown.
    """
    spilled = _send_spilled()
    if everything:
        resend_after_us = -MAX_WAIT_US
    elif (backlog := REACTIONS.count_backlog()) > MAX_BACKLOG:
        paused = {"sweeps_paused": 1, "outbox_age_s": _measure_age_s()}
        record("sweep_paused", paused, backlog=backlog)
        return spilled

    def find(before_us: int) -> list[tuple[Kind, Target]]:
        return redis_outbox.find_due(before_us, _TARGETS_PER_SHARD)

    def read_pages(targets: Sequence[tuple[Kind, Target]], after_us: int) -> list[SweptTarget]:
        return redis_outbox.sweep_all(targets, after_us, EVENTS_PER_TARGET, MAX_WAIT_US)

    def repair(swept: Sequence[SweptTarget]) -> None:
        resync(
            [(*page.member, page.db_version) for page in swept if page.code == "GAP"],
            [page.member for page in swept if page.code == "COLD"],
        )

    swept = outbox.sweep(
        find, read_pages, REACTIONS.send_all, resend_after_us, MAX_EVENTS, max_s, repair
    )
    sent = swept.sent + spilled
    metrics = {"republished": sent, "outbox_age_s": _measure_age_s()}
    record("outbox_swept", metrics, targets=swept.outboxes)
    return sent


def _measure_age_s() -> float:
    return outbox.measure(outboxes_key).age_s


def _send_spilled() -> int:
    """Send spilled events, follows and what other contexts spilled; return how many the queues
    accepted. Raises QueueDown."""
    try:
        own = sum(
            send_spilled(queue, partial(sqs.send_all, queue))
            for queue in (REACTIONS.name, FOLLOWS.name)
        )
        others: Iterator[Callable[[], int]] = (resend for _, resend in offers("resends"))
        return own + sum(resend() for resend in others)
    except MysqlDown as error:
        record("spill_resend_postponed", **error_fields(error))
        return 0


SWEEP = Sweep("reactions", "republished", sweep_outbox, 4.0, outboxes_key)
