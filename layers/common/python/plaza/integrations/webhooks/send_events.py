"""Send events to webhooks, in order, outside of the VPC; report what became of them by a queue."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.aws import secrets
from plaza.infra.http.web_client import ServerFailed, post
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record
from plaza.integrations.webhooks.model import WebhookBatch, check_url, find_outcome
from plaza.integrations.webhooks.queues import DELIVERIES, WEBHOOKS
from plaza.integrations.webhooks.settings import webhook_settings
from plaza.integrations.webhooks.signature import derive_secret, sign

__all__ = ["WEBHOOKS", "send_events"]

MAX_KEY_AGE_S = 300
"""How long a process uses the key of the secrets before it reads it again."""

MAX_SEND_S = 15.0
"""No event of a batch is sent after this time; the rest is in the next one."""


@WEBHOOKS.consumer
def send_events(batches: Sequence[WebhookBatch]) -> None:
    """Send the events of each batch until one is not received, and queue the outcome. One request
    an event. A batch that is too old is left: another one has its events. Safe to repeat, because
    receivers know the ids. Raises SecretsDown; QueueDown: the batch is delivered again."""
    for batch in batches:
        if clock.now_s() >= batch.expires_s:
            record("webhook_batch_expired", webhook_id=str(batch.webhook_id))
            continue
        received, error = _send(batch)
        DELIVERIES.send(find_outcome(batch, received, error))
        metrics = {"events_delivered": received, "events_blocked": int(error is not None)}
        record("events_delivered", metrics, webhook_id=str(batch.webhook_id), error=error)


def _send(batch: WebhookBatch) -> tuple[int, str | None]:
    """Return how many events were received, and why the next one was not."""
    config, deadline = webhook_settings(), Deadline.in_s(MAX_SEND_S)
    key = secrets.read_recent(config.require_key_secret_id(), MAX_KEY_AGE_S)
    signing = [derive_secret(key, batch.webhook_id, serial) for serial in batch.serials]
    for received, event in enumerate(batch.events):
        if deadline.has_passed:
            return received, None
        headers = sign(event.id, int(clock.now_s()), event.body, signing)
        try:
            url = check_url(batch.url, allows_loopback=config.allows_loopback)
            own = {"Content-Type": "application/json", "User-Agent": "Plaza-Webhooks", **headers}
            answer = post(url, event.body.encode(), own, allows_loopback=config.allows_loopback)
            if not 200 <= answer.status < 300:
                raise ServerFailed(f"HTTP {answer.status}")
        except (ServerFailed, ValueError) as error:
            return received, str(error)[:100].encode("ascii", "replace").decode()
    return len(batch.events), None
