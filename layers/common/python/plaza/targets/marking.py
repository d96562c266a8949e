"""What was seen, made or deleted: in this process's memory, and as markers in Redis."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.process import LocalCache
from plaza.targets import redis_targets
from plaza.targets.redis_targets import there_key
from plaza.targets.targets import There

__all__ = [
    "mark_all_made",
    "mark_gone",
    "mark_made",
    "remember_seen",
    "seen_lately",
    "there_key",
]

# A second: what another process deleted counts as live for so long, and no longer.
_seen: LocalCache[tuple[str, int], bool] = LocalCache(max_entries=10_000, ttl_s=1)


def seen_lately(target_type: str, target_id: int) -> bool:
    """True when this process saw it live within a second."""
    return (target_type, target_id) in _seen


def remember_seen(target_type: str, target_id: int) -> None:
    """This process just saw it live."""
    _seen.put((target_type, target_id), True)


def mark_made(target_type: str, target_id: int) -> None:
    """It was just made: whoever asked too early left a marker that says none. Raises RedisDown."""
    mark_all_made([(target_type, target_id)])


def mark_all_made(made: Sequence[tuple[str, int]]) -> None:
    """They were made. One round trip. Raises RedisDown."""
    redis_targets.mark_for_sure(made, There.LIVE)


def mark_gone(deleted: Sequence[tuple[str, int]]) -> None:
    """They were deleted. One round trip. Raises RedisDown."""
    for target in deleted:
        _seen.drop(target)
    redis_targets.mark_for_sure(deleted, There.GONE)
