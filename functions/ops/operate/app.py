"""Run one command for an operator, who may invoke this function by IAM. It has no URL and no
route."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.runtime.observability import logger, metrics
from plaza.operate.operator_commands import commands

commands.list_commands()  # loads what they use at the cold start, which has more CPU than a run


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Run ``{"command": ..., "arguments": {...}, "caller": ...}``; return the result of the
    command."""
    return commands.run(event)
