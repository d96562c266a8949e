"""The queue of targets that are to be refreshed in Redis, and its message."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra import messages
from plaza.infra.messages import ID, one_of, read
from plaza.infra.queues import Queue

TYPES = frozenset({"post", "comment", "review", "user"})


class TargetRefresh(NamedTuple):
    """Something whose projections in Redis are to be made again from MySQL."""

    type: str
    id: int

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode(self._asdict())

    @classmethod
    def from_json(cls, body: str) -> TargetRefresh:
        """What ``to_json`` wrote. Raises InvalidMessage."""
        fields = messages.read_object(body)
        return cls(read(fields, "type", one_of(TYPES)), read(fields, "id", ID))


REFRESHES = Queue(
    "refreshes", TargetRefresh.to_json, TargetRefresh.from_json, batch_size=100, window_s=1
)
"""What Redis is to be told again; content consumes it."""
