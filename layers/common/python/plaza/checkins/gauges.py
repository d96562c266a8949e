"""Gauges of check-ins: the outboxes in Redis."""

from __future__ import annotations

from plaza.checkins.redis_store import CheckInKeys, outboxes_key
from plaza.infra import outbox


def read_outboxes() -> dict[str, float]:
    """Return the number of outboxes and the age of an oldest entry. Two round trips. Raises
    RedisDown."""
    depth = outbox.measure(
        outboxes_key,
        lambda user_id: CheckInKeys(int(user_id)).outbox,
        lambda _, accepted_us: int(accepted_us),
    )
    return {"checkin_outboxes": depth.outboxes, "checkin_outbox_age_s": depth.age_s}
