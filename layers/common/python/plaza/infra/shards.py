"""The logical shards of Redis: everything about one target shares a hash tag."""

from __future__ import annotations

from zlib import crc32

SHARDS = 1024


def shard_of(target: str) -> int:
    """The shard of ``target``, which is written ``<type>:<id>``."""
    return crc32(target.encode()) % SHARDS
