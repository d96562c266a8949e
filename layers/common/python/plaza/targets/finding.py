"""Finding out whether a target is there, and whose it is."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from plaza.infra.errors import Unavailable
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.targets import mysql_targets, redis_targets
from plaza.targets.marking import remember_seen, seen_lately
from plaza.targets.mysql_targets import read_owners
from plaza.targets.targets import There

__all__ = ["TooManyLookups", "find", "find_all", "find_live", "look_up", "read_owners"]

# How often one process may ask MySQL for what has no marker: ids can be made up.
_lookup_budget = TokenBucket(rate_per_s=50, burst=200)


class TooManyLookups(Unavailable):
    """More targets without a marker are asked for than MySQL may be asked about."""


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
