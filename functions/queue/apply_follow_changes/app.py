"""Add posts of newly followed authors to inboxes; remove posts of unfollowed ones."""

from typing import Any

from aws_lambda_powertools.utilities.batch import process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.feed.apply_follows import FOLLOWS, apply_follow_changes
from plaza.infra.runtime.observability import logger, metrics

processor = FOLLOWS.processor(apply_follow_changes)


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle one batch."""
    return process_partial_response(event, processor.record_handler, processor, context)
