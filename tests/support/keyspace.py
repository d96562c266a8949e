"""The Redis of a test, a single node or a cluster: its keys, its clock, further connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from plaza.infra.redis import connections, redis
from plaza.infra.runtime.settings import settings


def find_keys(pattern: str = "*") -> list[str]:
    """Return the keys that match, sorted, without hot-key reports: any command may add one."""
    keys = (key for node in redis.nodes().values() for key in node.keys(pattern))
    return sorted(key for key in keys if ":hot:" not in key)


def delete_keys(keys: Iterable[str]) -> None:
    """Delete keys of any slots."""
    redis.pipeline(redis.delete_commands(keys))


def redis_us() -> int:
    """Return the time of one Redis node in microseconds since 1970."""
    [(seconds, micros)] = redis.pipeline([("TIME",)])
    return int(seconds) * 1_000_000 + int(micros)


@contextmanager
def own_client() -> Iterator[Any]:
    """Open a client for a thread, besides the process's."""
    own = connections.connect(settings().redis_url, cluster=settings().redis_cluster)
    try:
        yield own
    finally:
        own.close()
