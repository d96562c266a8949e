"""Jobs of the function SweepOutbox, which runs each minute. ``result``: the name of the number that
a job returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Sweep(NamedTuple):
    """Sends entries of ``outbox`` again and returns how many.

    ``run`` takes ``everything``, to send each entry, and ``max_s``; an operator's sweep ends after
    ``max_now_s``. ``index_key`` returns the key of a shard's index of outboxes.
    """

    outbox: str
    result: str
    run: Callable[..., int]
    max_now_s: float
    index_key: Callable[[int], str]


class Recovery(NamedTuple):
    """Does something when another master of Redis serves."""

    result: str
    run: Callable[[], int]
