"""Move the offsets of webhooks to what they received, and queue what follows."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.runtime.observability import record
from plaza.integrations.webhooks import dispatch_events, mysql_webhooks
from plaza.integrations.webhooks.model import DISABLED, DeliveryOutcome
from plaza.integrations.webhooks.queues import DELIVERIES

__all__ = ["DELIVERIES", "record_deliveries"]


@DELIVERIES.consumer
def record_deliveries(outcomes: Sequence[DeliveryOutcome]) -> None:
    """Store outcomes, and dispatch what is due then, so that a long backlog does not wait for the
    schedule. Two statements an outcome. An outcome of an earlier batch changes nothing, so it is
    safe to repeat. Raises MysqlDown."""
    for outcome in outcomes:
        state = mysql_webhooks.record_outcome(outcome)
        if state == DISABLED and outcome.error is not None:
            record("webhook_disabled", webhook_id=str(outcome.webhook_id), error=outcome.error)
    dispatch_events.dispatch_due()
