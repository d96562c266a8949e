"""Bring the rankings of posts to the counts in MySQL."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics
from plaza.recommendations.post_rankings import refresh_rankings


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("refresh_rankings")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Repair the ranking of all time; replace the rankings of the day and the week."""
    return {"ranked": refresh_rankings()}
