"""The queue of refreshes and its message."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra import messages
from plaza.infra.messages import ID, one_of, read
from plaza.infra.queues import Queue

TYPES = frozenset({"post", "comment", "review", "user"})


class TargetRefresh(NamedTuple):
    """A target whose projections in Redis are to be refreshed from MySQL."""

    type: str
    id: int

    def to_json(self) -> str:
        return messages.encode(self._asdict())

    @classmethod
    def from_json(cls, body: str) -> TargetRefresh:
        """Parse what ``to_json`` returned. Raises InvalidMessage."""
        fields = messages.read_object(body)
        return cls(read(fields, "type", one_of(TYPES)), read(fields, "id", ID))


REFRESHES = Queue(
    "refreshes", TargetRefresh.to_json, TargetRefresh.from_json, batch_size=100, window_s=1
)
"""Targets to refresh in Redis; content consumes it."""
