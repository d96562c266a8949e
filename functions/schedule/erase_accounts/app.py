"""Erase the accounts whose users asked for it, every minute."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.accounts.erase import run_passes
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("erase_accounts")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Run the passes that are due, for less than a minute."""
    return {"passes": run_passes()}
