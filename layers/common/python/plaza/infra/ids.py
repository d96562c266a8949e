"""Ids: 63 bits, ordered by time, unique without anybody being asked for each.

An id is seconds since 2025 << 32 | a serial of the day. Serials are leased from Redis in blocks and
run with its clock, 49,000 a second (lease_serials.lua): a Redis that lost all its data leases none
twice, and one that lost only the newest (a failover) none if that took a second.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from plaza.infra import clock, redis
from plaza.infra.errors import Unavailable
from plaza.infra.lua import load_script
from plaza.infra.process import Lazy
from plaza.infra.shards import shard_of

EPOCH_S = 1_735_689_600  # 2025-01-01 UTC
BLOCK_SIZE = 100
_DAY_S = 86_400
_MAX_ATTEMPTS = 20
_KEY = f"{{{shard_of('ids:serials')}}}:ids:serials"
_LEASE = load_script(Path(__file__).with_name("scripts") / "lease_serials.lua")


class SerialsExhausted(Unavailable):
    """More ids were asked for than there are for a second."""


@dataclass(slots=True)
class _Block:
    """What is left of a lease: ``next`` up to ``end``, serials of ``day`` (since 1970)."""

    day: int
    next: int
    end: int


def new_id() -> int:
    """An id that nobody has. A round trip to Redis for one in 100.

    Raises RedisDown, SerialsExhausted.
    """
    now_s = int(clock.now_s())
    block = _block.get()
    if block.next == block.end or block.day < now_s // _DAY_S:
        _block.reset()
        block = _block.get()
    serial = block.next
    block.next += 1
    # Around midnight, clocks disagree about the day; a serial is unique within its own.
    seconds = min(max(now_s, block.day * _DAY_S), (block.day + 1) * _DAY_S - 1)
    return (seconds - EPOCH_S) << 32 | serial


def created_at_s(record_id: int) -> int:
    """When an id was made, seconds since 1970, by the clock of who made it."""
    return (record_id >> 32) + EPOCH_S


def _lease() -> _Block:
    for _ in range(_MAX_ATTEMPTS):
        answer = redis.run(_LEASE, (_KEY,), (BLOCK_SIZE,))
        if len(answer) == 2:
            day, first = answer
            return _Block(day, first, first + BLOCK_SIZE)
        [wait_ms] = answer
        clock.sleep(min(wait_ms, 50) / 1000 * random.uniform(1, 2))  # others wait for it too
    raise SerialsExhausted("All ids of this second are used", retry_after_s=1)


_block = Lazy(_lease)
