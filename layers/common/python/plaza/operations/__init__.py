"""Operations: depths of queues, their dead letters and redrives, for admins. Owns no data."""

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
