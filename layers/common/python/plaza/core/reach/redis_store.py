"""Visitors in Redis. Each visitor belongs to one of 16 parts, so the visitors of a day are the sum
of its parts, and of a week the sum of unions of each part, which are in one slot.

{<shard>}:reach:<part>:<day>              string  HyperLogLog of the visitors of a part
{<shard>}:visitor-ids:<network>:<monday>  string  number of ids issued to a network in the week
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from plaza.core.reach.model import RETENTION_DAYS
from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Command

PARTS = 16
REACH_TTL_S = (RETENTION_DAYS + 1) * 86_400
ISSUED_TTL_S = 8 * 86_400


def reach_key(part: int, day: date) -> str:
    return key_of(f"reach:{part}", day.isoformat())


def issued_key(network: str, monday: date) -> str:
    return key_of(f"visitor-ids:{network}", monday.isoformat())


def commands_to_count(visitor: str, day: date) -> list[Command]:
    """Return the commands that count a visitor (``hash_visitor``) of ``day``, for a pipeline."""
    key = reach_key(int(visitor[0], 16), day)
    return [("PFADD", key, visitor), ("EXPIRE", key, REACH_TTL_S)]


def count_visitors(spans: Sequence[Sequence[date]]) -> list[int]:
    """Return the number of visitors of each span of days, within about 1 %. One round trip. Raises
    RedisDown."""
    counts: list[int] = redis.pipeline(
        [
            ("PFCOUNT", *(reach_key(part, day) for day in span))
            for span in spans
            for part in range(PARTS)
        ]
    )
    return [sum(counts[i : i + PARTS]) for i in range(0, len(counts), PARTS)]


def take_number(network: str, monday: date) -> int:
    """Return the number of an id of a network, from 1. One round trip. Raises RedisDown."""
    key = issued_key(network, monday)
    number, _ = redis.pipeline([("INCR", key), ("EXPIRE", key, ISSUED_TTL_S)])
    return int(number)
