"""Compare finished sales, Redis with MySQL, and remove them from Redis, every minute."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.flash_sales.finalize_vouchers import finalize_vouchers
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("finalize_vouchers")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Finalize the sales that have closed."""
    return {"finalized": finalize_vouchers()}
