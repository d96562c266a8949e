"""How far queues, stores and schedules are behind, now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from plaza.infra.contexts import offers
from plaza.infra.jobs import scheduled_jobs
from plaza.infra.jobs.scheduled_jobs import ScheduledRun
from plaza.infra.queues import spill
from plaza.infra.runtime.errors import Unavailable
from plaza.operate.operations.gauges import read_gauges
from plaza.operate.operations.model import QueueState
from plaza.operate.operations.queue_admin import read_queues

T = TypeVar("T")


class Lag(NamedTuple):
    """``queues``: None while SQS is unavailable; ``runs``: schedule -> its last run, None while
    Redis is; ``gauges``: without those whose store is."""

    queues: list[QueueState] | None
    gauges: dict[str, float]
    runs: Mapping[str, ScheduledRun] | None


def read_lag() -> Lag:
    """Return the lag. Costs the meters of all contexts, ``read_queues``, one statement and one
    round trip."""
    meters = [spill.read_gauges, *(meter for _, meter in offers("lag"))]
    return Lag(_try(read_queues), read_gauges(meters), _try(scheduled_jobs.read_runs))


def _try(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except Unavailable:
        return None
