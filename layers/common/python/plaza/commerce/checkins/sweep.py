"""Send check-ins again that stayed in an outbox too long (``infra.derived.outbox``)."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.commerce.checkins import redis_outbox
from plaza.commerce.checkins.queues import CHECKINS
from plaza.commerce.checkins.redis_outbox import SweptUser
from plaza.commerce.checkins.redis_store import outboxes_key
from plaza.infra.derived import outbox
from plaza.infra.derived.outbox import MAX_BACKLOG, MAX_WAIT_US
from plaza.infra.jobs.sweeps import Sweep
from plaza.infra.runtime.observability import record

MAX_EVENTS = 10_000
MAX_RUN_S = 10
_USERS_PER_SHARD = 100


def sweep_checkins(
    resend_after_us: int | None = None, *, everything: bool = False, max_s: float = MAX_RUN_S
) -> int:
    """Resend events that have waited longer than ``resend_after_us``; return how many were sent.

    ``resend_after_us`` None means the setting ``ResendAfter``. ``everything``: send each entry,
    also one that was swept a moment ago or while the backlog is long. Sends about 10,000 at most,
    for ``max_s``; the next run continues. Raises RedisDown, QueueDown.
    """
    if everything:
        resend_after_us = -MAX_WAIT_US
    elif (backlog := CHECKINS.count_backlog()) > MAX_BACKLOG:
        skipped = {"checkin_sweeps_skipped": 1, "checkin_outbox_age_s": _measure_age_s()}
        record("checkin_sweep_skipped", skipped, backlog=backlog)
        return 0

    def find(before_us: int) -> list[int]:
        return redis_outbox.find_due(before_us, _USERS_PER_SHARD)

    def read_pages(user_ids: Sequence[int], after_us: int) -> list[SweptUser]:
        return redis_outbox.sweep_all(user_ids, after_us, MAX_WAIT_US)

    swept = outbox.sweep(find, read_pages, CHECKINS.send_all, resend_after_us, MAX_EVENTS, max_s)
    metrics = {"checkins_republished": swept.sent, "checkin_outbox_age_s": _measure_age_s()}
    record("checkins_swept", metrics, users=swept.outboxes)
    return swept.sent


def _measure_age_s() -> float:
    return outbox.measure(outboxes_key).age_s


SWEEP = Sweep("checkins", "checkins_republished", sweep_checkins, 2.0, outboxes_key)
