"""Compare Redis, counters and rows, one part of a reconciliation run at a time."""

from typing import Any

from aws_lambda_powertools.utilities.batch import process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.runtime.observability import logger, metrics
from plaza.reconciliation.orchestrator import COMPARISONS, process_parts

processor = COMPARISONS.processor(process_parts)


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle one batch."""
    return process_partial_response(event, processor.record_handler, processor, context)
