"""Open a new session for the canary. Secrets Manager invokes it, once for each of four steps."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.mysql.secret_rotation import rotate
from plaza.infra.runtime.observability import logger, metrics
from plaza.operate.accounts.canary import CANARY


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Take one step of the rotation of the canary's secret."""
    rotate(event, CANARY)
