"""Project changes that bypassed the API, read from the binlog of MySQL, to Redis."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.changes.follow_binlog import follow_changes
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime.observability import logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
@scheduled("follow_binlog")
def handler(event: object, context: LambdaContext) -> dict[str, float]:
    """Continue at the position of the last run."""
    followed = follow_changes()
    return {"rows": followed.rows, "lost": int(followed.lost), "lag_s": followed.lag_s}
