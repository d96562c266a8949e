"""Markers of live and deleted targets, in this process's cache and in Redis."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.targets import redis_store
from plaza.core.targets.model import Existence, Mark
from plaza.core.targets.redis_store import existence_key
from plaza.infra.runtime.process import LocalCache

__all__ = [
    "cache_live",
    "existence_key",
    "is_cached_live",
    "mark_all_created",
    "mark_created",
    "mark_deleted",
    "mark_missing",
]

# For up to 1 s a target that another process deleted counts as live.
_live_targets: LocalCache[tuple[str, int], bool] = LocalCache(max_entries=10_000, ttl_s=1)


def is_cached_live(target_type: str, target_id: int) -> bool:
    """Return True when this process found the target live within the last second."""
    return (target_type, target_id) in _live_targets


def cache_live(target_type: str, target_id: int) -> None:
    """Cache in this process that the target is live, for 1 s."""
    _live_targets.put((target_type, target_id), True)


def mark_created(target_type: str, target_id: int) -> None:
    """Mark a new target as live, as ``mark_all_created`` does."""
    mark_all_created([(target_type, target_id)])


def mark_all_created(created: Sequence[tuple[str, int]]) -> None:
    """Mark new targets as live: earlier look-ups may have marked them as missing. One round trip.
    Raises RedisDown."""
    redis_store.overwrite_marks(dict.fromkeys(created, Mark(Existence.LIVE)))


def mark_missing(erased: Sequence[tuple[str, int]]) -> None:
    """Mark targets as missing, whatever their markers are. One round trip. Raises RedisDown."""
    for target in erased:
        _live_targets.drop(target)
    redis_store.overwrite_marks(dict.fromkeys(erased, Mark(Existence.MISSING)))


def mark_deleted(deleted: Sequence[tuple[str, int]]) -> None:
    """Mark targets as deleted. One round trip. Raises RedisDown."""
    for target in deleted:
        _live_targets.drop(target)
    redis_store.overwrite_marks(dict.fromkeys(deleted, Mark(Existence.DELETED)))
