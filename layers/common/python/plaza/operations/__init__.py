"""Operations: queues, dead letters, breakers, schedules, and samples of gauges, for admins.

A gauge is a named number that a context measures; a handler passes the functions that measure
them. Owns the table gauge_sample.
"""

from plaza.operations.model import (
    DeadLetter,
    DlqHasConsumer,
    QueueNotFound,
    QueueState,
    RedriveResult,
)
from plaza.operations.queue_admin import (
    MAX_PER_CALL,
    list_dead_letters,
    read_queues,
    redrive,
)

__all__ = [
    "MAX_PER_CALL",
    "DeadLetter",
    "DlqHasConsumer",
    "QueueNotFound",
    "QueueState",
    "RedriveResult",
    "list_dead_letters",
    "read_queues",
    "redrive",
]
