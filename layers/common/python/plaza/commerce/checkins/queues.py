"""The queue of check-ins to store in MySQL."""

from __future__ import annotations

from plaza.commerce.checkins.model import EVENTS
from plaza.infra.queues.queue import Queue

CHECKINS = Queue(EVENTS, batch_size=1_000, window_s=1)
