"""Operations: what waits in the queues, what died there, and its way back. For admins."""

from plaza.operations.inspecting import read_queues, show_dead_letters
from plaza.operations.operations import DeadLetter, HasConsumer, QueueMissing, QueueState, Redriven
from plaza.operations.redriving import MOST_PER_CALL, redrive

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
