"""Delete expired rows, every hour."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza import idempotency
from plaza.auth import expired_sessions
from plaza.infra.jobs.expiry import delete_in_steps
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics, record
from plaza.operations import gauges

_DELETES = {
    "session": expired_sessions.delete_expired,
    "idempotency_key": idempotency.delete_expired,
    "gauge_sample": gauges.delete_expired,
}


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("delete_expired")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Delete for less than a minute; the next run continues."""
    deleted = delete_in_steps(_DELETES)
    metrics = {
        "sessions_deleted": deleted["session"],
        "idempotency_keys_deleted": deleted["idempotency_key"],
        "gauge_samples_deleted": deleted["gauge_sample"],
    }
    record("expired_deleted", metrics)
    return deleted
