"""Outboxes of check-ins: find due ones, read their due events. A call is one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from plaza.commerce.checkins.model import CheckInEvent
from plaza.commerce.checkins.redis_store import CheckInKeys, outboxes_key
from plaza.infra.derived import outbox
from plaza.infra.derived.outbox import Progress, SweptPage
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script

SWEEP = load_script(Path(__file__).with_name("lua") / "sweep.lua")

SweptUser = SweptPage[int, CheckInEvent]


def find_due(before_us: int, limit: int) -> list[int]:
    """Return users with a day that was accepted before ``before_us``, at most ``limit`` a shard.
    Two round trips. Raises RedisDown."""
    return [int(user_id) for user_id in outbox.find_due(outboxes_key, before_us, limit)]


def sweep_all(user_ids: Sequence[int], resend_after_us: int, max_wait_us: int) -> list[SweptUser]:
    """Return the due events of users, see sweep.lua. Raises RedisDown."""
    calls = []
    for user_id in user_ids:
        keys = CheckInKeys(user_id)
        args = (user_id, resend_after_us, max_wait_us)
        calls.append(Call(SWEEP, (keys.outbox, keys.outboxes, keys.sweep), args))
    replies = redis.run_all(calls)
    return [_read_page(user_id, *reply) for user_id, reply in zip(user_ids, replies, strict=True)]


def _read_page(user_id: int, before: str, after: str, oldest: str, *entries: str) -> SweptUser:
    pairs = iter(entries)
    events = [
        CheckInEvent(user_id, date.fromordinal(int(day)), int(accepted_us))
        for day, accepted_us in zip(pairs, pairs, strict=True)
    ]
    keys = CheckInKeys(user_id)
    return SweptPage(
        user_id, events, Progress(keys.sweep, keys.outboxes, user_id, before, after, oldest)
    )
