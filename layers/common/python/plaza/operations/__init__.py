"""Operations: what waits in the queues, what died there, and its way back. For admins."""

from plaza.operations.operations import DeadLetter, HasConsumer, QueueMissing, QueueState, Redriven
from plaza.operations.queue_admin import (
    MOST_PER_CALL,
    read_queues,
    redrive,
    show_dead_letters,
)

__all__ = [
    "MOST_PER_CALL",
    "DeadLetter",
    "HasConsumer",
    "QueueMissing",
    "QueueState",
    "Redriven",
    "read_queues",
    "redrive",
    "show_dead_letters",
]
