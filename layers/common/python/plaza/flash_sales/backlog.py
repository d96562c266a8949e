"""How far the queue of orders is behind, asked now and then by each process."""

from __future__ import annotations

from math import ceil

from plaza.flash_sales.queues import ORDERS
from plaza.infra.process import LocalCache
from plaza.infra.queues import QueueDown
from plaza.infra.settings import settings

BACKLOG_TTL_S = 2.0
MAX_POLL_S = 60
_UNKNOWN_POLL_S = 5

_backlog: LocalCache[str, int | None] = LocalCache(1, BACKLOG_TTL_S)  # name of the queue -> orders


def poll_after_s() -> int:
    """When somebody whose order is pending should ask again: later, the longer the queue is.

    A batch waits for a second at most before it is saved, so a short queue is no reason for more.
    """
    waiting = count_unfinished()
    if waiting is None:
        return _UNKNOWN_POLL_S
    return min(MAX_POLL_S, max(1, ceil(waiting / settings().orders_per_s)))


def count_unfinished() -> int | None:
    """About how many orders aren't saved yet, as of two seconds ago; None when SQS is away."""
    return _backlog.get_or_load(ORDERS.name, _count)


def mark_unavailable() -> None:
    """SQS did not take an order just now: for two seconds it is not asked how far it is, either."""
    _backlog.put(ORDERS.name, None)


def _count() -> int | None:
    try:
        return ORDERS.count_unfinished()
    except QueueDown:
        return None
