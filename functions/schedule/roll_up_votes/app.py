"""Roll likes up to votes of reviews and hours of posts, in the order of the log."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics
from plaza.recommendations.vote_roll_up import roll_up_votes


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("roll_up_votes")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Roll up the events that were logged since the last run."""
    return {"rolled_up_to": roll_up_votes()}
