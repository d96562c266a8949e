"""Reads from replicas of Redis: at most 1 s behind their master, or answered by the master.

For reads of keys that this process reads often, by anonymous callers (``infra.redis.hot_reads``).
Without ``redis_reader_url`` all go to the master.

A replica does not know how far it is behind, so each process measures it: once a second it adds a
heartbeat to the shard on the master, along with a read. A replica whose heartbeat is as high has
all that the master had then. Its heartbeat is read along with each read, before it.

{<shard>}:heartbeat  string  number of heartbeats of all processes
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from redis.exceptions import RedisClusterException, RedisError

from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call, Command, key_of_command
from plaza.infra.redis.hot_keys import sampler
from plaza.infra.redis.shards import tag_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.process import LocalCache
from plaza.infra.runtime.settings import settings

MAX_AGE_S = 1.0
AVOID_S = 10.0  # after a replica failed
_MAX_TAGS = 128

# tag -> lowest fresh heartbeat
_heartbeats: LocalCache[str, int] = LocalCache(_MAX_TAGS, ttl_s=MAX_AGE_S)
_avoided: LocalCache[str, bool] = LocalCache(1)
_ALL = "all replicas"


def run_all(calls: Sequence[Call], commands: Sequence[Command] = ()) -> list[Any]:
    """Return the replies to scripts and commands that only read, as of at most 1 s ago.

    One round trip; another, to the master, if the replica is behind or unavailable. All keys have a
    hash tag. Raises RedisDown.
    """
    if not settings().redis_reader_url or _ALL in _avoided:
        return redis.run_all(calls, commands)
    keys = [call.keys[0] for call in calls] + [
        key_of_command(command) or "" for command in commands
    ]
    tags = list(dict.fromkeys(map(tag_of, keys)))
    heartbeats = _heartbeats.get_all(tags)
    if missing := [tag for tag in tags if tag not in heartbeats]:
        return _read_with_heartbeats(missing, calls, commands)
    try:
        replies = redis.run_all_on_replicas(
            [("GET", _heartbeat_key(tag)) for tag in tags], calls, commands
        )
    except (RedisError, RedisClusterException, OSError) as error:
        record("replica_failed", {"replica_failed": 1}, error_type=type(error).__name__)
        _avoided.put(_ALL, True, AVOID_S)
        return redis.run_all(calls, commands)
    if any(
        int(heartbeat or 0) < heartbeats[tag] for tag, heartbeat in zip(tags, replies, strict=False)
    ):
        record("replica_behind", {"replica_behind": 1})
        _avoided.put(_ALL, True, MAX_AGE_S)
        return redis.run_all(calls, commands)
    for key in keys:
        sampler.sample_spared("replica", partial(str, key))
    return replies[len(tags) :]


def _read_with_heartbeats(
    tags: Sequence[str], calls: Sequence[Call], commands: Sequence[Command]
) -> list[Any]:
    """Return the replies of the master; add a heartbeat to each of ``tags``."""
    began_s = clock.monotonic_s()
    adding: list[Command] = [("INCR", _heartbeat_key(tag)) for tag in tags]
    replies = redis.run_all(calls, [*commands, *adding])
    heartbeats_at = len(replies) - len(tags)
    for tag, heartbeat in zip(tags, replies[heartbeats_at:], strict=True):
        _heartbeats.put(tag, int(heartbeat), MAX_AGE_S - (clock.monotonic_s() - began_s))
    return replies[:heartbeats_at]


def _heartbeat_key(tag: str) -> str:
    return f"{tag}}}:heartbeat"
