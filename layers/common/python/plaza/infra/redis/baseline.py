"""Refuse the data of a version before 0.4.0, whose keys and values this version cannot read."""

from __future__ import annotations

from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.shards import SHARDS

_KEYS_BEFORE = [f"{{{shard}}}:log_heads" for shard in range(SHARDS)]
"""Keys that only those versions wrote, within a minute after their start."""


class RedisTooOld(Exception):
    """A version before 0.4.0 filled Redis."""


def require_new_redis() -> None:
    """Raise RedisTooOld if a version before 0.4.0 filled Redis. One round trip, in a cluster one to
    each node. A Redis that is away is not checked: it is loaded from MySQL, which is."""
    try:
        found = any(redis.pipeline([("EXISTS", key) for key in _KEYS_BEFORE]))
    except RedisDown:
        return
    if found:
        raise RedisTooOld(
            "this Redis was filled by a version before 0.4.0, whose keys cannot be read:"
            " run `make fresh`, or begin with an empty Redis (docs/upgrading.md)"
        )
