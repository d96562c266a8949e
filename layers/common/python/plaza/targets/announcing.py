"""Announcing a write before it is made, so that Redis hears of it whoever dies in between.

The message comes when the write is done or never will be: its delay is longer than a request may
take. Its consumer (functions/queue/refresh_projections) reads what MySQL has by then.
"""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra import messages, queues
from plaza.infra.messages import ID, one_of, read
from plaza.infra.observability import cause, record
from plaza.infra.queues import QueueDown

REFRESHES = "refreshes"  # the queue of what Redis is to be told again
TYPES = frozenset({"post", "comment", "review", "user"})
DELAY_S = 15


class Refresh(NamedTuple):
    """Something whose projections in Redis are to be made again from MySQL."""

    type: str
    id: int

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode(self._asdict())

    @classmethod
    def from_json(cls, body: str) -> Refresh:
        """What ``to_json`` wrote. Raises BadRecord."""
        fields = messages.read_object(body)
        return cls(read(fields, "type", one_of(TYPES)), read(fields, "id", ID))


def announce(target_type: str, target_id: int) -> bool:
    """Have it refreshed in a moment; False when the queue is away, which is no reason to refuse."""
    try:
        queues.send(REFRESHES, Refresh(target_type, target_id).to_json(), delay_s=DELAY_S)
    except QueueDown as error:
        record("write_unannounced", {"unannounced": 1}, **cause(error))
        return False
    return True
