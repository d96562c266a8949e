"""Measure what is in transit in Redis, queues and MySQL; wait until nothing is."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import pymysql
from botocore.exceptions import EndpointConnectionError

from cli.paths import CommandError
from local.stack.servers import connect_mysql, connect_redis
from local.stack.stack import Stack
from local.stack.status import count_messages

TIMEOUT_S = 300.0
# Longer than a batch takes on one machine: with less, a slow batch is delivered twice.
SHORT_VISIBILITY_TIMEOUT_S = 10
RECOVERING = "SweepOutbox", "RecoverOrders"  # functions of schedules that finish what was left
_POLL_INTERVAL_S = 0.25
_FIRST_SWEEP_AFTER_S = 5.0
_MAX_SWEEP_WAIT_S = 30.0
_SALE = re.compile(r"\{\d+\}:voucher:\d{1,19}:sale", re.ASCII)


class Backlog(NamedTuple):
    """``targets``: with an outbox or in the outbox index. ``orders``: pending ones. ``waiting``,
    ``in_flight``: messages, without DLQs. ``spilled``: messages and orders that the queue
    refused."""

    targets: int
    orders: int
    waiting: int
    in_flight: int
    spilled: int

    def __str__(self) -> str:
        return (
            f"{self.targets} targets with pending changes, {self.orders} pending orders,"
            f" {self.waiting} messages waiting, {self.in_flight} in flight,"
            f" {self.spilled} spilled to MySQL"
        )


def _ignore_progress(text: str) -> None:
    pass


def read_backlog(stack: Stack) -> Backlog:
    """Return what is in transit now. Queues are counted again after the stores: what a store or a
    queue has sent since the first count is in a queue that was counted before."""
    first = sum_messages(stack)
    with connect_redis(stack.redis_url, cluster=stack.redis_cluster) as client:
        targets, orders = count_pending(client)
    spilled = count_spilled(stack.mysql_url)
    waiting, in_flight = map(max, first, sum_messages(stack))
    return Backlog(targets, orders, waiting, in_flight, spilled)


def sum_messages(stack: Stack) -> tuple[int, int]:
    """Return (messages waiting, in flight or delayed) of all queues but DLQs."""
    depths = [depth for name, depth in count_messages(stack).items() if not name.endswith("_dlq")]
    return sum(waiting for waiting, _ in depths), sum(hidden for _, hidden in depths)


def count_pending(client: Any) -> tuple[int, int]:
    """Return the number of targets with an outbox or in the outbox index, and of pending orders.
    One SCAN and a pipeline."""
    targets, shards, sales = 0, [], []
    for key in set(client.scan_iter(count=1000)):
        targets += key.startswith("{") and key.endswith(":outbox")
        if key.startswith("{") and key.endswith(":outboxes"):
            shards.append(key)
        elif _SALE.fullmatch(key):
            sales.append(key)
    pipe = client.pipeline(transaction=False)
    for key in shards:
        pipe.zcard(key)
    for key in sales:
        pipe.hget(key, "counts")
    replies = pipe.execute()
    counts = [reply.split(":") for reply in replies[len(shards) :] if reply]
    return max(targets, sum(replies[: len(shards)])), sum(int(pending) for _, pending, *_ in counts)


def count_spilled(mysql_url: str) -> int:
    """Return the number of messages and orders that SQS refused; 1 while MySQL is unavailable."""
    try:
        with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT COUNT(*) FROM spilled_message)"
                " + (SELECT COUNT(*) FROM order_outbox)"
            )
            [(count,)] = cursor.fetchall()
            return int(count)
    except pymysql.err.OperationalError:
        return 1


def wait_until_quiet(
    stack: Stack,
    timeout_s: float = TIMEOUT_S,
    on_progress: Callable[[str], None] = _ignore_progress,
) -> bool:
    """Wait until nothing is in transit; return False after ``timeout_s``.

    Invokes the sweeper, and the recovery of orders, at growing intervals instead of waiting for
    their schedules.
    """
    began_s = time.monotonic()
    sweep_at_s, wait_s = began_s + _FIRST_SWEEP_AFTER_S, _FIRST_SWEEP_AFTER_S
    while any(backlog := read_backlog(stack)):
        now_s = time.monotonic()
        on_progress(str(backlog))
        if now_s - began_s > timeout_s:
            return False
        is_stored = backlog.targets or backlog.orders or backlog.spilled
        if is_stored and not backlog.waiting and now_s >= sweep_at_s:
            for function in RECOVERING:
                # A server is unavailable: a later run succeeds.
                with contextlib.suppress(CommandError):
                    stack.invoke(function, {})
            wait_s = min(wait_s * 1.5, _MAX_SWEEP_WAIT_S)
            sweep_at_s = time.monotonic() + wait_s
        time.sleep(_POLL_INTERVAL_S)
    return True


@contextlib.contextmanager
def shorten_visibility_timeout(
    stack: Stack, *queues: str, visibility_timeout_s: int = SHORT_VISIBILITY_TIMEOUT_S
) -> Iterator[None]:
    """Set a short visibility timeout, so that messages of killed consumers return soon.

    ``visibility_timeout_s`` must exceed the time of a batch. Restores the old timeouts.
    """
    sqs = stack.connect("sqs")
    name = "VisibilityTimeout"
    before = {
        url: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]
        for url in (stack.queues[queue] for queue in queues)
    }
    try:
        for url in before:
            sqs.set_queue_attributes(QueueUrl=url, Attributes={name: str(visibility_timeout_s)})
        yield
    finally:
        with contextlib.suppress(EndpointConnectionError):  # the stack has been stopped
            for url, timeout_s in before.items():
                sqs.set_queue_attributes(QueueUrl=url, Attributes={name: timeout_s})
