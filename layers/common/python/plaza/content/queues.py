"""The queue of posts that are to be pushed to followers, and its message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plaza.infra import messages
from plaza.infra.messages import ID, boolean, integer, read
from plaza.infra.queues import Queue


@dataclass(frozen=True, slots=True)
class FanOut:
    """A post is to be pushed to its author's followers whose id is above ``after_id``.

    A new post is its own first page. ``announce``: the author has become a star, and that is pushed
    with it. The consumer reads the rest from MySQL.
    """

    post_id: int
    after_id: int = 0
    announce: bool = False

    def to_json(self) -> str:
        """As it stands on the queue."""
        fields: dict[str, Any] = {"post_id": self.post_id}
        if self.after_id:
            fields |= {"after_id": self.after_id, "announce": self.announce}
        return messages.encode(fields)

    @classmethod
    def from_json(cls, body: str) -> FanOut:
        """What ``to_json`` wrote. Raises InvalidMessage."""
        fields = messages.read_object(body)
        return cls(
            read(fields, "post_id", ID),
            read(fields, "after_id", integer(0, messages.MAX_ID), default=0),
            read(fields, "announce", boolean, default=False),
        )


FANOUTS = Queue("fanouts", FanOut.to_json, FanOut.from_json)
"""Posts to be pushed, a page of followers a message; the feed consumes it."""
