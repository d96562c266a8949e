"""Markers in Redis of what is there, in the shard of the target:

{<shard>}:<type>:<id>:there  string  live, none or gone
"""

from __future__ import annotations

from plaza.infra import redis
from plaza.infra.shards import shard_of
from plaza.targets.targets import There

_TTL_S = {There.LIVE: 3600, There.NONE: 30, There.GONE: 3600}


def _there_key(target_type: str, target_id: int) -> str:
    """The key of the marker."""
    name = f"{target_type}:{target_id}"
    return f"{{{shard_of(name)}}}:{name}:there"


def mark(target_type: str, target_id: int, there: There) -> None:
    """Leave a marker, unless somebody who knew better (a deletion) left one. Raises RedisDown."""
    key = _there_key(target_type, target_id)
    redis.execute("SET", key, there.value, "EX", _TTL_S[there], "NX")


def mark_for_sure(target_type: str, target_id: int, there: There) -> None:
    """Leave the marker of what was just made or deleted. Raises RedisDown."""
    redis.execute("SET", _there_key(target_type, target_id), there.value, "EX", _TTL_S[there])


def read_mark(target_type: str, target_id: int) -> There | None:
    """What the marker says, None when there is none. Raises RedisDown."""
    said = redis.execute("GET", _there_key(target_type, target_id))
    return There(said) if said else None
