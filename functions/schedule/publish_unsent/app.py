"""Send posts to the fan-out queue that SQS refused, every minute."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.content.publish import publish_unsent
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("publish_unsent")
def handler(event: object, context: LambdaContext) -> dict[str, int]:
    """Run once; return how many posts were sent."""
    return {"published": publish_unsent()}
