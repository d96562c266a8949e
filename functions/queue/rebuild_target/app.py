"""The Bloom filter of a big target is built in the background, a step at a time."""

from typing import Any

from plaza.infra.queues import PartialBatchResponse, consume
from plaza.reactions import REBUILDS, read_step, rebuild


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Take each build one step further."""
    return consume(event, REBUILDS, read_step, rebuild)
