"""Gauges of check-ins: the outboxes in Redis."""

from __future__ import annotations

from plaza.commerce.checkins.redis_store import outboxes_key
from plaza.infra.derived import outbox


def read_checkin_outboxes() -> dict[str, float]:
    """Return the number of outboxes and the age of the oldest entry. One round trip. Raises
    RedisDown."""
    depth = outbox.measure(outboxes_key)
    return {"checkin_outboxes": depth.outboxes, "checkin_outbox_age_s": depth.age_s}
