"""Queue events that webhooks have not received, every few seconds of each minute."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.integrations.webhooks.dispatch_events import dispatch_webhooks


@scheduled("dispatch_webhooks")
def handler(event: object, context: object) -> dict[str, int]:
    """Run for the most of a minute; once if there is no webhook."""
    return dispatch_webhooks()
