"""The logical shards of Redis: everything about one target shares a hash tag."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

SHARDS = 128  # a batch of 1,000 events is a script call a shard, not one a target


def tag_of(key: str) -> str:
    """The hash tag of a key, the part before its closing brace: keys that share it share a node."""
    return key.partition("}")[0]


def group_by_tag(keys: Sequence[str], most: int) -> list[list[int]]:
    """The indexes of ``keys`` in groups of one hash tag, at most ``most`` in each."""
    by_tag: dict[str, list[int]] = {}
    for index, key in enumerate(keys):
        by_tag.setdefault(tag_of(key), []).append(index)
    return [
        indexes[start : start + most]
        for indexes in by_tag.values()
        for start in range(0, len(indexes), most)
    ]


def shard_of(target: str) -> int:
    """The shard of ``target``, which is written ``<type>:<id>``."""
    return crc32(target.encode()) % SHARDS
