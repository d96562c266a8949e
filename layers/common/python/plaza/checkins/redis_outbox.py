"""Outboxes of check-ins: find due ones, read their overdue events. Each call is one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from plaza.checkins.model import CheckInEvent
from plaza.checkins.redis_store import CheckInKeys, outboxes_key
from plaza.infra import outbox, redis
from plaza.infra.lua import load_script
from plaza.infra.redis import Call

SWEEP = load_script(Path(__file__).with_name("lua") / "sweep.lua")


def find_due(before_us: int, limit: int) -> list[int]:
    """Return users with a due outbox, at most ``limit`` a shard. Raises RedisDown."""
    return [int(user_id) for user_id in outbox.find_due(outboxes_key, before_us, limit)]


def sweep_all(user_ids: Sequence[int], grace_us: int, max_wait_us: int) -> list[CheckInEvent]:
    """Return the overdue events of users, see sweep.lua. Raises RedisDown."""
    calls = []
    for user_id in user_ids:
        keys = CheckInKeys(user_id)
        calls.append(Call(SWEEP, (keys.outbox, keys.outboxes), (user_id, grace_us, max_wait_us)))
    events = []
    for user_id, entries in zip(user_ids, redis.run_all(calls), strict=True):
        pairs = iter(entries)
        for day, accepted_us in zip(pairs, pairs, strict=True):
            events.append(CheckInEvent(user_id, date.fromordinal(int(day)), int(accepted_us)))
    return events
