"""The queue of check-ins to store in MySQL."""

from __future__ import annotations

from plaza.checkins.model import CheckInEvent
from plaza.infra.queues import Queue

CHECKINS = Queue(
    "checkins", CheckInEvent.to_json, CheckInEvent.from_json, batch_size=1_000, window_s=1
)
