"""The queues of events that are sent to webhooks, and of what became of them."""

from __future__ import annotations

from plaza.infra.queues.messages import message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.runtime.codec import Struct, values_of
from plaza.integrations.webhooks.model import DeliveryOutcome, SentEvent, WebhookBatch


class _EventBody(Struct, frozen=True):
    id: str
    body: str
    reaction_seq: int
    event_seq: int


class _BatchBody(Struct, frozen=True):
    webhook_id: int
    attempt: int
    url: str
    serials: list[int]
    events: list[_EventBody]
    next: tuple[int, int, int]
    expires_s: int


class _OutcomeBody(Struct, frozen=True):
    webhook_id: int
    attempt: int
    received: int
    offset: tuple[int, int, int | None] | None
    error: str | None


def _unpack(batch: _BatchBody) -> WebhookBatch:
    return WebhookBatch(
        batch.webhook_id,
        batch.attempt,
        batch.url,
        tuple(batch.serials),
        tuple(SentEvent(*values_of(event)) for event in batch.events),
        batch.next,
        batch.expires_s,
    )


def _pack(batch: WebhookBatch) -> _BatchBody:
    events = [_EventBody(*event) for event in batch.events]
    return _BatchBody(*batch[:3], list(batch.serials), events, batch.next, batch.expires_s)


# A batch that is not sent in time is sent by a later run, so a message is never worth waiting for.
WEBHOOKS: Queue[WebhookBatch] = Queue(
    message_codec("webhooks", _BatchBody, _unpack, _pack),
    batch_size=1,
    max_concurrency=10,
    retention_days=1,
    retry=RetryPolicy(max_wait_s=4 * 3_600),
)
DELIVERIES: Queue[DeliveryOutcome] = Queue(
    message_codec(
        "deliveries",
        _OutcomeBody,
        lambda outcome: DeliveryOutcome(*values_of(outcome)),
        lambda outcome: _OutcomeBody(*outcome),
    ),
    retention_days=1,
    retry=RetryPolicy(max_wait_s=4 * 3_600),
)
