"""Delete expired rows, every hour."""

from plaza.core import idempotency
from plaza.core.event_log import read_events
from plaza.infra.jobs.expiry import delete_in_steps
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import record
from plaza.notifications.unread import purge
from plaza.operate.operations import gauges
from plaza.people.auth import expired_sessions

_DELETES = {
    "session": expired_sessions.delete_expired,
    "idempotency_key": idempotency.delete_expired,
    "gauge_sample": gauges.delete_expired,
    "notification_group": purge.delete_expired,
    "event_offset": read_events.delete_expired,
}


@scheduled("delete_expired")
def handler(event: object, context: object) -> dict[str, int]:
    """Delete for less than a minute; the next run continues."""
    deleted = delete_in_steps(_DELETES)
    metrics = {
        "sessions_deleted": deleted["session"],
        "idempotency_keys_deleted": deleted["idempotency_key"],
        "gauge_samples_deleted": deleted["gauge_sample"],
        "notification_groups_deleted": deleted["notification_group"],
        "event_offsets_deleted": deleted["event_offset"],
    }
    record("expired_deleted", metrics)
    return deleted
