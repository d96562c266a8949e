"""Markers in Redis of what is there, in the shard of the target:

{<shard>}:<type>:<id>:there  string  live, none or gone
"""

from __future__ import annotations

from plaza.content.content import There
from plaza.infra import redis
from plaza.infra.shards import shard_of

_TTL_S = {There.LIVE: 3600, There.NONE: 30, There.GONE: 3600}


def _there_key(content_type: str, content_id: int) -> str:
    """The key of the marker."""
    name = f"{content_type}:{content_id}"
    return f"{{{shard_of(name)}}}:{name}:there"


def mark(content_type: str, content_id: int, there: There) -> None:
    """Leave a marker, unless somebody who knew better (a deletion) left one. Raises RedisDown."""
    key = _there_key(content_type, content_id)
    redis.execute("SET", key, there.value, "EX", _TTL_S[there], "NX")


def read_mark(content_type: str, content_id: int) -> There | None:
    """What the marker says, None when there is none. Raises RedisDown."""
    said = redis.execute("GET", _there_key(content_type, content_id))
    return There(said) if said else None
