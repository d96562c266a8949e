"""Finding out whether a target is there, and whose it is."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from plaza.infra.errors import Unavailable
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.targets import mysql_store, redis_store
from plaza.targets.markers import cache_live, is_cached_live
from plaza.targets.model import Existence
from plaza.targets.mysql_store import read_owners

__all__ = ["TooManyLookups", "find", "find_all", "find_in_mysql", "find_live", "read_owners"]

# How often one process may ask MySQL for what has no marker: ids can be made up.
_lookup_budget = TokenBucket(rate_per_s=50, burst=200)


class TooManyLookups(Unavailable):
    """More targets without a marker are asked for than MySQL may be asked about."""


def find(target_type: str, target_id: int, *, use_cache: bool = True) -> Existence:
    """Whether it is there: memory (if ``use_cache`` will do), Redis, MySQL.

    Raises TooManyLookups, MysqlDown.
    """
    if use_cache and is_cached_live(target_type, target_id):
        return Existence.LIVE
    try:
        there = redis_store.read_mark(target_type, target_id)
    except RedisDown:
        there = None
    if there is None:
        _spend_lookup_budget()
        return find_in_mysql(target_type, target_id)
    if there is Existence.LIVE:
        cache_live(target_type, target_id)
    return there


def find_all(targets: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Existence]:
    """Returns whether each of ``targets`` is there: by the markers, else by MySQL.

    Ids that were made up cost MySQL nothing for half a minute. One round trip, and one statement
    and another round trip where a marker is missing. Raises TooManyLookups, MysqlDown.
    """
    wanted = list(dict.fromkeys(targets))
    found: dict[tuple[str, int], Existence] = {}
    with suppress(RedisDown):
        found = redis_store.read_marks(wanted)
    if missing := [target for target in wanted if target not in found]:
        _spend_lookup_budget()
        looked_up = mysql_store.read_all_existence(missing)
        with suppress(RedisDown):  # the markers only save the next one a look
            redis_store.mark_all(looked_up)
        found |= looked_up
    return found


def find_live(targets: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Returns those of ``targets`` that are there and not deleted, as ``find_all`` does."""
    return {target for target, there in find_all(targets).items() if there is Existence.LIVE}


def find_in_mysql(target_type: str, target_id: int) -> Existence:
    """Whether it is there, by MySQL; leaves a marker for those who come after. Raises MysqlDown."""
    there = mysql_store.read_existence(target_type, target_id)
    if there is Existence.LIVE:
        cache_live(target_type, target_id)
    with suppress(RedisDown):  # the marker only saves the next one a look
        redis_store.mark(target_type, target_id, there)
    return there


def _spend_lookup_budget() -> None:
    """Take one statement from the budget. Raises TooManyLookups when it is empty."""
    if not _lookup_budget.take():
        raise TooManyLookups("Too many ids are being looked up", retry_after_s=1)
