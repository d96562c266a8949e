"""Delete expired rows, every hour."""

from plaza.infra.contexts import offers
from plaza.infra.jobs.expiry import delete_in_steps
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import record

_EXPIRIES = [expiry for _, expiry in offers("expires")]


@scheduled("delete_expired")
def handler(event: object, context: object) -> dict[str, int]:
    """Delete for less than a minute; the next run continues."""
    deleted = delete_in_steps(_EXPIRIES)
    record("expired_deleted", {expiry.metric: deleted[expiry.table] for expiry in _EXPIRIES})
    return deleted
