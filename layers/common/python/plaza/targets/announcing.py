"""Announcing a write before it is made, so that Redis hears of it whoever dies in between.

The message comes when the write is done or never will be: its delay is longer than a request may
take. Its consumer (functions/queue/refresh_projections) reads what MySQL has by then.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from plaza.infra import queues
from plaza.infra.observability import cause, record
from plaza.infra.queues import BadRecord, QueueDown

REFRESHES = "refreshes"  # the queue of what Redis is to be told again
TYPES = frozenset({"post", "comment", "review", "user"})
DELAY_S = 15
_MOST_ID = 2**63 - 1


class Refresh(NamedTuple):
    """Something whose projections in Redis are to be made again from MySQL."""

    type: str
    id: int

    def to_json(self) -> str:
        """As it stands on the queue."""
        return json.dumps(self._asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, body: str) -> Refresh:
        """What ``to_json`` wrote. Raises BadRecord."""
        try:
            said = json.loads(body)
            target_type, target_id = said["type"], said["id"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadRecord(f"nothing to refresh: {type(error).__name__} {error}") from None
        if type(target_type) is not str or target_type not in TYPES:
            raise BadRecord(f"no {str(target_type)[:40]!r} can be refreshed")
        if type(target_id) is not int or not 0 < target_id <= _MOST_ID:
            raise BadRecord(f"id is {str(target_id)[:40]!r}")
        return cls(target_type, target_id)


def announce(target_type: str, target_id: int) -> bool:
    """Have it refreshed in a moment; False when the queue is away, which is no reason to refuse."""
    try:
        queues.send(REFRESHES, Refresh(target_type, target_id).to_json(), delay_s=DELAY_S)
    except QueueDown as error:
        record("write_unannounced", {"unannounced": 1}, **cause(error))
        return False
    return True
