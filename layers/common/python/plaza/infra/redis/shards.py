"""The logical shards of Redis: all keys of one target share a hash tag.

A key is ``{<shard>}:...``. Keys of the context ``auth`` are ``auth{<shard>}:...``, so that a rule
of Redis for other keys cannot match them.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

SHARDS = 128  # a batch of 1,000 events needs one script call per shard, not one per target


def tag_of(key: str) -> str:
    """Return the hash tag of a key, up to its closing brace: it decides the node of the key."""
    return key.partition("}")[0].removeprefix("auth")


def group_by_tag(
    keys: Sequence[str], max_size: int, sizes: Sequence[int] | None = None
) -> list[list[int]]:
    """Return the indexes of ``keys`` in groups of one hash tag and at most ``max_size``.

    A key has size 1 without ``sizes``; a key above ``max_size`` gets a group of its own. Indexes of
    one tag stay in order, within groups and between them.
    """
    groups: list[list[int]] = []
    last: dict[str, tuple[list[int], int]] = {}  # tag -> its newest group and the group's size
    for index, key in enumerate(keys):
        size, tag = 1 if sizes is None else sizes[index], tag_of(key)
        group, taken = last.get(tag) or ([], max_size)
        if taken + size > max_size:
            group, taken = [], 0
            groups.append(group)
        group.append(index)
        last[tag] = group, taken + size
    return groups


def shard_of(target: str) -> int:
    """Return the shard of ``target`` (``<type>:<id>``)."""
    return crc32(target.encode()) % SHARDS
