"""The Redis of a test from outside: all its keys, its clock, connections of one's own.

One node or a cluster: a test that looks through here need not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from plaza.infra import redis
from plaza.infra.settings import settings


def find_keys(pattern: str = "*") -> list[str]:
    """All keys that fit, sorted, but for the samples of hot keys: any command may bring one."""
    found = (key for node in redis.nodes().values() for key in node.keys(pattern))
    return sorted(key for key in found if ":hot:" not in key)


def delete_keys(keys: Iterable[str]) -> None:
    """Remove keys, whatever slots they are in."""
    redis.pipeline(redis.delete_commands(keys))


def redis_us() -> int:
    """The clock of Redis (of one of its nodes), microseconds since 1970."""
    [(seconds, micros)] = redis.pipeline([("TIME",)])
    return int(seconds) * 1_000_000 + int(micros)


@contextmanager
def own_client() -> Iterator[Any]:
    """A client beside that of the process, for a thread."""
    own = redis.connect(settings().redis_url, cluster=settings().redis_cluster)
    try:
        yield own
    finally:
        own.close()
