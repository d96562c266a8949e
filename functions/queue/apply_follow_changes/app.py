"""Who is followed comes into the inbox, who isn't any more leaves it."""

from typing import Any

from plaza.feed import apply_follow_changes, read_pairs
from plaza.infra.queues import PartialBatchResponse, consume
from plaza.infra.retries import RetryPolicy
from plaza.reactions import FOLLOWS

RETRY = RetryPolicy(max_wait_s=12 * 3_600)


def handler(event: dict[str, Any], context: object) -> PartialBatchResponse:
    """Let inboxes have what MySQL says of these follows by now."""
    return consume(event, FOLLOWS, read_pairs, apply_follow_changes, RETRY)
