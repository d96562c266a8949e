"""The Bloom filter of a big target is built in the background, a step at a time."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.reactions import REBUILDS, read_step, rebuild

RETRY = RetryPolicy(max_wait_s=4 * 3_600)  # the gate asks again


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Take each build one step further."""
    return consume(event, REBUILDS, read_step, rebuild, RETRY)
