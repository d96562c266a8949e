"""The backlog of the order queue, cached by each process for 2 s."""

from __future__ import annotations

from math import ceil

from plaza.commerce.flash_sales.model import SaleGeneration
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.commerce.flash_sales.settings import sale_settings
from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.process import LocalCache

BACKLOG_TTL_S = 2.0
MAX_POLL_S = 60
_UNKNOWN_POLL_S = 5
_MAX_DRAINING = 1_000

_backlog: LocalCache[str, int | None] = LocalCache(1, BACKLOG_TTL_S)  # name of the queue -> orders

# A generation that drains -> orders. What was read before it began may lack orders of the lost one.
_drains: LocalCache[SaleGeneration, int | None] = LocalCache(_MAX_DRAINING, BACKLOG_TTL_S)


def poll_after_s() -> int:
    """Return when a buyer should poll a pending order: after 1 to 60 s, by the backlog."""
    unfinished = count_unfinished()
    if unfinished is None:
        return _UNKNOWN_POLL_S
    return min(MAX_POLL_S, max(1, ceil(unfinished / sale_settings().orders_per_s)))


def count_unfinished() -> int | None:
    """Return about how many orders are not stored yet, up to 2 s old; None if SQS is down."""
    return _backlog.get_or_load(ORDERS.name, _count)


def has_drained(sale: SaleGeneration) -> bool:
    """Return whether the queue was empty at a time after ``sale`` began, up to 2 s ago; False if
    SQS is down. A call to SQS in each 2 s."""
    return _drains.get_or_load(sale, _count) == 0


def mark_unavailable() -> None:
    """Stop polling the queue for 2 s, because SQS has just refused an order."""
    _backlog.put(ORDERS.name, None)


def _count() -> int | None:
    try:
        return ORDERS.count_unfinished()
    except QueueDown:
        return None
