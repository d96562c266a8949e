"""The queue of check-ins that are to be saved."""

from __future__ import annotations

from plaza.checkins.checkins import CheckedIn
from plaza.infra.queues import Queue

CHECKINS = Queue("checkins", CheckedIn.to_json, CheckedIn.from_json, batch_size=1_000, window_s=1)
