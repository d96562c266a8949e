"""What people react to: posts, comments, reviews and each other. Is it there, and whose is it?

Whether something is there is known first by this process's memory, then by a marker in Redis, then
by MySQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from cachetools import TTLCache

from plaza.infra.errors import Unavailable
from plaza.infra.limits import TokenBucket
from plaza.infra.redis import RedisDown
from plaza.targets import mysql_targets, redis_targets
from plaza.targets.announcing import announce
from plaza.targets.mysql_targets import read_owners
from plaza.targets.queues import REFRESHES, Refresh
from plaza.targets.targets import There

__all__ = [
    "REFRESHES",
    "Refresh",
    "There",
    "TooManyLookups",
    "announce",
    "find",
    "find_all",
    "find_live",
    "forget_seen",
    "look_up",
    "mark_all_made",
    "mark_gone",
    "mark_made",
    "read_owners",
    "remember_seen",
    "seen_lately",
]

# A second: what another process deleted counts as live for so long, and no longer.
_SEEN: TTLCache[tuple[str, int], bool] = TTLCache(maxsize=10_000, ttl=1)
# How often one process may ask MySQL for what has no marker: ids can be made up.
_lookup_budget = TokenBucket(rate_per_s=50, burst=200)


class TooManyLookups(Unavailable):
    """More targets without a marker are asked for than MySQL may be asked about."""


def seen_lately(target_type: str, target_id: int) -> bool:
    """True when this process saw it live within a second."""
    return (target_type, target_id) in _SEEN


def remember_seen(target_type: str, target_id: int) -> None:
    """This process just saw it live."""
    _SEEN[target_type, target_id] = True


def forget_seen() -> None:
    """Empty this process's memory of what is there."""
    _SEEN.clear()


def find(target_type: str, target_id: int, *, remembered: bool = True) -> There:
    """Whether it is there: memory (if ``remembered`` will do), Redis, MySQL.

    Raises TooManyLookups, MysqlDown.
    """
    if remembered and seen_lately(target_type, target_id):
        return There.LIVE
    try:
        there = redis_targets.read_mark(target_type, target_id)
    except RedisDown:
        there = None
    if there is None:
        _take_lookup()
        return look_up(target_type, target_id)
    if there is There.LIVE:
        remember_seen(target_type, target_id)
    return there


def find_all(targets: Iterable[tuple[str, int]]) -> dict[tuple[str, int], There]:
    """Returns whether each of ``targets`` is there: by the markers, else by MySQL.

    Ids that were made up cost MySQL nothing for half a minute. One round trip, and one statement
    and another round trip where a marker is missing. Raises TooManyLookups, MysqlDown.
    """
    wanted = list(dict.fromkeys(targets))
    found: dict[tuple[str, int], There] = {}
    with suppress(RedisDown):
        found = redis_targets.read_marks(wanted)
    if missing := [target for target in wanted if target not in found]:
        _take_lookup()
        looked_up = mysql_targets.look_up_all(missing)
        with suppress(RedisDown):  # the markers only save the next one a look
            redis_targets.mark_all(looked_up)
        found |= looked_up
    return found


def find_live(targets: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Returns those of ``targets`` that are there and not deleted, as ``find_all`` does."""
    return {target for target, there in find_all(targets).items() if there is There.LIVE}


def look_up(target_type: str, target_id: int) -> There:
    """Whether it is there, by MySQL; leaves a marker for those who come after. Raises MysqlDown."""
    there = mysql_targets.look_up(target_type, target_id)
    if there is There.LIVE:
        remember_seen(target_type, target_id)
    with suppress(RedisDown):  # the marker only saves the next one a look
        redis_targets.mark(target_type, target_id, there)
    return there


def _take_lookup() -> None:
    """Take one statement from the budget. Raises TooManyLookups when it is empty."""
    if not _lookup_budget.take():
        raise TooManyLookups("Too many ids are being looked up", retry_after_s=1)


def mark_made(target_type: str, target_id: int) -> None:
    """It was just made: whoever asked too early left a marker that says none. Raises RedisDown."""
    mark_all_made([(target_type, target_id)])


def mark_all_made(made: Sequence[tuple[str, int]]) -> None:
    """They were made. One round trip. Raises RedisDown."""
    redis_targets.mark_for_sure(made, There.LIVE)


def mark_gone(deleted: Sequence[tuple[str, int]]) -> None:
    """They were deleted. One round trip. Raises RedisDown."""
    for target in deleted:
        _SEEN.pop(target, None)
    redis_targets.mark_for_sure(deleted, There.GONE)
