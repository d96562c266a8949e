"""The fan-out queue and its message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plaza.infra import messages
from plaza.infra.messages import ID, boolean, integer, read
from plaza.infra.queues import Queue


@dataclass(frozen=True, slots=True)
class FanOut:
    """Push a post to the page of its author's followers whose ids are above ``after_id``.

    ``announce``: the author has become a star, and the push marks the author as one in the inbox.
    """

    post_id: int
    after_id: int = 0
    announce: bool = False

    def to_json(self) -> str:
        fields: dict[str, Any] = {"post_id": self.post_id}
        if self.after_id:
            fields |= {"after_id": self.after_id, "announce": self.announce}
        return messages.encode(fields)

    @classmethod
    def from_json(cls, body: str) -> FanOut:
        """Return the message that ``to_json`` encoded. Raises InvalidMessage."""
        fields = messages.read_object(body)
        return cls(
            read(fields, "post_id", ID),
            read(fields, "after_id", integer(0, messages.MAX_ID), default=0),
            read(fields, "announce", boolean, default=False),
        )


FANOUTS = Queue("fanouts", FanOut.to_json, FanOut.from_json)
"""One page of followers a message; consumed by the feed."""
