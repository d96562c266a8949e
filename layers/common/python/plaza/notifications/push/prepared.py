"""What the consumer of PUSHES needs of recipients, and the requests that it sends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.observability import record
from plaza.notifications.push import mysql_store
from plaza.notifications.push.model import PushRequest
from plaza.notifications.push.mysql_store import read_recipients
from plaza.notifications.push.queues import PUSH_REQUESTS

__all__ = ["end_subscriptions", "read_recipients", "send_requests"]


def send_requests(requests: Sequence[PushRequest], sequences: Mapping[int, int]) -> None:
    """Send requests, ten a call, then store up to which sequences the notifications of users are
    pushed. One statement. Raises QueueDown if SQS did not accept all: a repeat sends them again."""
    if requests and PUSH_REQUESTS.send_all(requests) < len(requests):
        raise QueueDown("SQS did not accept all pushes")
    mysql_store.raise_sequences(sequences)


def end_subscriptions(ended: Collection[tuple[int, bytes]]) -> None:
    """Delete subscriptions that a push service ended. One statement. Raises MysqlDown."""
    if count := mysql_store.delete_subscriptions(ended):
        record("subscriptions_ended", {"push_subscriptions_ended": count})
