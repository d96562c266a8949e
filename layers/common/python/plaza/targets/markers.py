"""What was seen, made or deleted: in this process's memory, and as markers in Redis."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.process import LocalCache
from plaza.targets import redis_store
from plaza.targets.model import Existence
from plaza.targets.redis_store import existence_key

__all__ = [
    "cache_live",
    "existence_key",
    "is_cached_live",
    "mark_all_created",
    "mark_created",
    "mark_deleted",
]

# A second: what another process deleted counts as live for so long, and no longer.
_live_targets: LocalCache[tuple[str, int], bool] = LocalCache(max_entries=10_000, ttl_s=1)


def is_cached_live(target_type: str, target_id: int) -> bool:
    """True when this process saw it live within a second."""
    return (target_type, target_id) in _live_targets


def cache_live(target_type: str, target_id: int) -> None:
    """This process just saw it live."""
    _live_targets.put((target_type, target_id), True)


def mark_created(target_type: str, target_id: int) -> None:
    """It was just made: whoever asked too early left a marker that says none. Raises RedisDown."""
    mark_all_created([(target_type, target_id)])


def mark_all_created(made: Sequence[tuple[str, int]]) -> None:
    """They were made. One round trip. Raises RedisDown."""
    redis_store.overwrite_marks(made, Existence.LIVE)


def mark_deleted(deleted: Sequence[tuple[str, int]]) -> None:
    """They were deleted. One round trip. Raises RedisDown."""
    for target in deleted:
        _live_targets.drop(target)
    redis_store.overwrite_marks(deleted, Existence.DELETED)
