"""Request new recommendations for shops whose reviews got votes."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics
from plaza.recommendations.recommend import refresh_recommendations


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("refresh_recommendations")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Queue a rebuild of each stale list."""
    return {"rebuilds_requested": refresh_recommendations()}
