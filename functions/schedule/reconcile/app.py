"""Start a reconciliation run every night, or continue one that has not ended."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics
from plaza.reconciliation.orchestrator import start


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("reconcile")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Start a run, or continue the open one."""
    return {"run": start()}
