"""Ids: 63 bits, ordered by time, unique, one round trip for 100 of them.

An id is seconds since 2025 << 32 | a serial of the day. Serials are leased from Redis in blocks and
advance with its clock, 49,000 a second (lease_serials.lua): a Redis that lost all its data leases
no serial twice, and one that lost its newest writes (a failover) none if that took at least 1 s.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from plaza.infra.redis import redis
from plaza.infra.redis.scripts import SHARED, load_script
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.process import Lazy

START_S = 1_735_689_600  # 2025-01-01 UTC
BLOCK_SIZE = 100
_DAY_S = 86_400
_MAX_ATTEMPTS = 20
_KEY = f"{{{shard_of('ids:serials')}}}:ids:serials"
_LEASE = load_script(SHARED / "lease_serials.lua")


class SerialsExhausted(Unavailable):
    """All ids of this second are in use."""


@dataclass(slots=True)
class _Block:
    """The rest of a lease: serials from ``next``, below ``end``, of ``day`` since 1970."""

    day: int
    next: int
    end: int


def new_id() -> int:
    """Return a new id. One round trip for 100 ids. Raises RedisDown, SerialsExhausted."""
    now_s = int(clock.now_s())
    block = _block.get()
    if block.next == block.end or block.day < now_s // _DAY_S:
        _block.reset()
        block = _block.get()
    serial = block.next
    block.next += 1
    # Around midnight the clocks may differ by a day; a serial is unique within its own day.
    seconds = min(max(now_s, block.day * _DAY_S), (block.day + 1) * _DAY_S - 1)
    return (seconds - START_S) << 32 | serial


def created_at_s(record_id: int) -> int:
    """Return when an id was made, in seconds since 1970, by the clock of its process."""
    return (record_id >> 32) + START_S


def first_id_at(at_s: int) -> int:
    """Return the lowest id that could be made in the second ``at_s`` since 1970."""
    return (at_s - START_S) << 32


def _lease() -> _Block:
    for _ in range(_MAX_ATTEMPTS):
        reply = redis.run(_LEASE, (_KEY,), (BLOCK_SIZE,))
        if len(reply) == 2:
            day, first = reply
            return _Block(day, first, first + BLOCK_SIZE)
        [wait_ms] = reply
        clock.sleep(min(wait_ms, 50) / 1000 * random.uniform(1, 2))  # other processes wait too
    raise SerialsExhausted("All ids of this second are in use; try again.", retry_after_s=1)


_block = Lazy(_lease)
