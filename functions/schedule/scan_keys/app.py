"""Scan Redis for large and hot keys, every five minutes."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics
from plaza.keyspace.key_scan import scan_keys


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("scan_keys")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Continue the scan of all keys for half a minute."""
    return scan_keys()
