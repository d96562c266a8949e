"""Queue what webhooks have not received, one batch of each at a time.

A batch is leased before it is queued. If it, its sender or its outcome is lost, the lease ends and
the same events are sent again; a webhook whose events fail waits until the time that its outcome
stored.
"""

from __future__ import annotations

import json

from plaza.core.event_log import read_events
from plaza.core.event_log.model import EventOffset, EventsGone, LogHead
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record
from plaza.integrations.webhooks import mysql_webhooks
from plaza.integrations.webhooks.model import (
    DISABLED,
    ENABLED,
    EVENTS_PER_BATCH,
    MAX_LEASE_S,
    SentEvent,
    Webhook,
    WebhookBatch,
)
from plaza.integrations.webhooks.queues import WEBHOOKS

MAX_RUN_S = 45.0
STEP_S = 5.0
_MAX_PASSED_PAGES = 20
_encode = json.JSONEncoder(separators=(",", ":")).encode


def dispatch_webhooks() -> dict[str, int]:
    """Queue batches of all webhooks every five seconds for the most of a minute; once if there is
    none. Returns numbers of webhooks and of batches. Four statements a step, five a batch. Raises
    MysqlDown."""
    deadline, batches = Deadline.in_s(MAX_RUN_S), 0
    while True:
        batches += dispatch_due()
        counts = mysql_webhooks.count_by_state()
        if not counts.get(ENABLED) or deadline.left_s < STEP_S:
            break
        clock.sleep(STEP_S)
    numbers = {
        "webhooks": counts.get(ENABLED, 0),
        "webhooks_failing": counts["failing"],
        "webhooks_disabled": counts.get(DISABLED, 0),
    }
    record("webhooks_dispatched", numbers, batches=batches)
    return {**numbers, "batches": batches}


def dispatch_due() -> int:
    """Queue a batch of each webhook that lacks events and waits for nothing; return how many.
    Raises MysqlDown."""
    head = read_events.find_head()
    return sum(_dispatch(webhook, head) for webhook in mysql_webhooks.find_due(head))


def _dispatch(webhook: Webhook, head: LogHead) -> bool:
    """Queue the next batch of a webhook; return whether it is on its way."""
    offset = EventOffset(head.epoch, webhook.reaction_seq, webhook.event_seq, webhook.read_s)
    for _ in range(_MAX_PASSED_PAGES):
        try:
            page = read_events.read_page(offset, EVENTS_PER_BATCH)
        except EventsGone:
            # Another epoch means a restore between the two reads: the next step reads again.
            if read_events.find_head().epoch == head.epoch:
                mysql_webhooks.disable(webhook, "its events are in the archive only")
            return False
        events = [
            SentEvent(event.id, _encode(event.to_dict()), *seqs)
            for event, seqs in zip(page.events, page.seqs, strict=True)
            if webhook.wants(event.kind)
        ]
        if events:
            return _send(webhook, events, page.next)
        mysql_webhooks.pass_events(webhook, page.next)
        offset = page.next
        if not page.has_more:
            break
    return False


def _send(webhook: Webhook, events: list[SentEvent], after: EventOffset) -> bool:
    if not mysql_webhooks.lease(webhook):
        return False  # another process was first, or an operator changed it
    batch = WebhookBatch(
        webhook.id,
        webhook.attempt + 1,
        webhook.url,
        webhook.list_serials(clock.now_us()),
        tuple(events),
        (after.reaction_seq, after.event_seq, after.read_s),
        int(clock.now_s()) + MAX_LEASE_S,
    )
    if WEBHOOKS.try_send(batch):
        return True
    mysql_webhooks.release(webhook.id, batch.attempt)
    return False
