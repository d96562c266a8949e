"""Look-ups of the existence and the owner of targets."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from plaza.core.targets import mysql_store, redis_store
from plaza.core.targets.markers import cache_live, is_cached_live
from plaza.core.targets.model import Existence, Mark, Visibility
from plaza.core.targets.mysql_store import owners_of, read_owners, select_owners
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.errors import Unavailable

__all__ = [
    "TooManyLookups",
    "find",
    "find_all",
    "find_hidden",
    "find_in_mysql",
    "find_live",
    "owners_of",
    "read_owners",
    "select_owners",
    "spend_budget",
]

# Limits the statements of one process for targets without a marker: clients can invent ids.
_lookup_budget = TokenBucket(rate_per_s=50, burst=200)


class TooManyLookups(Unavailable):
    """The budget for look-ups in MySQL is empty; try again."""


def find(target_type: str, target_id: int, *, use_cache: bool = True) -> Existence:
    """Return the existence of a target, from the cache (``use_cache``), Redis or MySQL. One round
    trip and one statement at most. Raises TooManyLookups, MysqlDown."""
    if use_cache and is_cached_live(target_type, target_id):
        return Existence.LIVE
    target = target_type, target_id
    mark: Mark | None = None
    with suppress(RedisDown):
        mark = redis_store.read_marks([target]).get(target)
    if mark is None:
        spend_budget()
        return find_in_mysql(target_type, target_id)
    if mark.existence is Existence.LIVE:
        cache_live(target_type, target_id)
    return mark.existence


def find_all(targets: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Existence]:
    """Return the existence of each of ``targets``, from the markers, else from MySQL.

    One round trip; one statement and another round trip without a marker, which also a missing
    target has for 30 s. Raises TooManyLookups, MysqlDown.
    """
    unique = list(dict.fromkeys(targets))
    marks: dict[tuple[str, int], Mark] = {}
    with suppress(RedisDown):
        marks = redis_store.read_marks(unique)
    if missing := [target for target in unique if target not in marks]:
        spend_budget()
        looked_up = mysql_store.read_existence(missing)
        with suppress(RedisDown):  # markers only save later statements
            redis_store.mark_all(looked_up)
        marks |= looked_up
    return {target: mark.existence for target, mark in marks.items()}


def find_live(targets: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return the targets that exist and are not deleted, at the cost of ``find_all``."""
    marks = find_all(targets)
    return {target for target, existence in marks.items() if existence is Existence.LIVE}


def find_hidden(targets: Collection[tuple[str, int]]) -> dict[tuple[str, int], Visibility]:
    """Return the targets that a moderator hid. One statement, none for types that cannot be hidden.
    Raises MysqlDown."""
    return mysql_store.read_hidden(targets)


def find_in_mysql(target_type: str, target_id: int) -> Existence:
    """Return the existence in MySQL and store it as marker. One statement. Raises MysqlDown."""
    target = target_type, target_id
    marks = mysql_store.read_existence([target])
    if marks[target].existence is Existence.LIVE:
        cache_live(target_type, target_id)
    with suppress(RedisDown):  # the marker only saves later statements
        redis_store.mark_all(marks)
    return marks[target].existence


def spend_budget() -> None:
    """Take one look-up from the budget of this process. Raises TooManyLookups."""
    if not _lookup_budget.take():
        raise TooManyLookups("Too many ids are being looked up.", retry_after_s=1)
