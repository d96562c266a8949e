"""How far the queue of orders is behind, asked now and then by each process."""

from __future__ import annotations

import time
from math import ceil

from plaza.flash_sales.queues import ORDERS
from plaza.infra.queues import QueueDown
from plaza.infra.settings import settings

LOOK_EVERY_S = 2.0
LONGEST_POLL_S = 60
_UNKNOWN_POLL_S = 5

_seen: tuple[float, int | None] | None = None


def poll_after_s() -> int:
    """When somebody whose order is pending should ask again: later, the longer the queue is.

    A batch waits for a second at most before it is saved, so a short queue is no reason for more.
    """
    waiting = count_waiting()
    if waiting is None:
        return _UNKNOWN_POLL_S
    return min(LONGEST_POLL_S, max(1, ceil(waiting / settings().orders_per_s)))


def count_waiting() -> int | None:
    """About how many orders aren't saved yet, as of two seconds ago; None when SQS is away."""
    global _seen
    now_s = time.monotonic()
    if _seen is None or now_s - _seen[0] > LOOK_EVERY_S:
        try:
            _seen = now_s, ORDERS.count_unfinished()
        except QueueDown:
            _seen = now_s, None
    return _seen[1]


def note_silence() -> None:
    """SQS did not take an order just now: for two seconds it is not asked how far it is, either."""
    global _seen
    _seen = time.monotonic(), None


def forget_waiting() -> None:
    """Ask SQS the next time."""
    global _seen
    _seen = None
