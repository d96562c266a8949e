"""Try the new version of an API function before it gets traffic. CodeDeploy invokes it."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.aws.deployment_hook import smoke_version
from plaza.infra.runtime.observability import logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str]:
    """Report to CodeDeploy whether the version may get traffic."""
    return {"status": smoke_version(event)}
