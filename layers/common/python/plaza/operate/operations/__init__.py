"""Operations: queues, dead letters, breakers, schedules, and samples of gauges, for admins.

A gauge is a named number that a context measures; a handler passes the functions that measure
them. Owns the table gauge_sample. Handlers use ``queue_admin``, ``gauges``, ``lag``, ``breakers``.
"""

from plaza.operate.operations.model import (
    DeadLetter,
    DlqHasConsumer,
    PurgeResult,
    QueueNotFound,
    QueueState,
    RedriveResult,
)

__all__ = [
    "DeadLetter",
    "DlqHasConsumer",
    "PurgeResult",
    "QueueNotFound",
    "QueueState",
    "RedriveResult",
    "breakers",
    "gauges",
    "lag",
    "queue_admin",
]
