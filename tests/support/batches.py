"""One batch for a consumer, as its function handles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from aws_lambda_powertools.utilities.batch import process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse

from plaza.infra.queues.processor import QueueProcessor
from plaza.infra.queues.retries import RetryPolicy

T = TypeVar("T")


def consume(
    event: dict[str, Any],
    queue: str,
    decode: Callable[[str], T],
    handle: Callable[[list[T]], object],
    retry: RetryPolicy | None = None,
) -> PartialItemFailureResponse:
    """Return the messages of ``event`` that Lambda is to leave in the queue."""
    processor = QueueProcessor(queue, decode, handle, retry or RetryPolicy())
    return process_partial_response(event, processor.record_handler, processor)
