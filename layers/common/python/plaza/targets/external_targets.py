"""Targets of the app: their creation, their deletion and their ids.

The id of a number never changes, also after a deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from plaza.infra.mysql import mysql
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import Conflict, NotFound
from plaza.targets import lookup, mysql_external, mysql_store, redis_store
from plaza.targets.model import Existence, Mark
from plaza.targets.mysql_external import StoredTarget
from plaza.targets.types import EXTERNAL, EXTERNAL_ID, number_of

MAX_CREATED = 100  # in one call


class NumberTaken(Conflict):
    """Another id of the type has the same number, of 63 bits, and was first."""

    slug = "number-taken"
    title = "Number taken"
    example = "8f3a has the number of another article."


class ExternalTarget(NamedTuple):
    """An object of the app as it declares it; ``owner_id``: None without an owner."""

    type: str
    external_id: str
    owner_id: int | None = None
    url: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Return the target as reactions name it."""
        return self.type, number_of(self.type, self.external_id)


class Created(Enum):
    """What a creation did; all but LIVE refuse it."""

    LIVE = "live"
    DELETED = "deleted"  # a deleted target is not made again
    OWNER_FIXED = "owner-fixed"  # it has another owner, or none
    NUMBER_TAKEN = "number-taken"  # by another id of the same number


def read_external_id(target_type: str, text: str) -> int:
    """Return the number of an id in a path. Raises NotFound if ``text`` is no id of the type."""
    external = EXTERNAL[target_type].external
    if external is None or not EXTERNAL_ID.fullmatch(text) or not external.pattern.fullmatch(text):
        raise NotFound(f"{text[:64]!r} is not the id of a {target_type}.")
    return number_of(target_type, text)


def create_all(declared: Sequence[ExternalTarget]) -> list[Created]:
    """Create those of ``declared`` that do not exist, at most MAX_CREATED, and replace the URLs of
    the others; return what became of each. Safe to repeat.

    Two packets and one round trip. Raises MysqlDown, RedisDown.
    """
    created = _store(declared)
    redis_store.overwrite_marks(
        {
            of.key: Mark(Existence.LIVE, of.external_id)
            for of, result in zip(declared, created, strict=True)
            if result is Created.LIVE
        }
    )
    return created


def find(target: tuple[str, int], external_id: str, *, creates: bool) -> Existence:
    """Return the existence in MySQL of the target with this id, and store it as marker.

    With ``creates``, a missing target is created, without an owner, if first reactions create those
    of its type. One statement and one round trip; two packets more to create it. Raises
    NumberTaken, TooManyLookups, MysqlDown.
    """
    lookup.spend_budget()
    mark = mysql_store.read_existence([target])[target]
    external = EXTERNAL[target[0]].external
    if mark.existence is Existence.MISSING and creates and external and external.by_first_reaction:
        _store([ExternalTarget(target[0], external_id)])
        # By another caller, maybe, who may have deleted it since.
        mark = mysql_store.read_existence([target])[target]
    if mark.existence is Existence.LIVE and mark.external_id != external_id:
        raise NumberTaken(f"{external_id} has the number of another {target[0]}.")
    with suppress(RedisDown):  # the marker only saves later statements
        redis_store.overwrite_marks({target: mark})
    return mark.existence


def _store(declared: Sequence[ExternalTarget]) -> list[Created]:
    rows = [(*of.key, of.external_id, of.owner_id, of.url) for of in declared]
    stored = mysql.run_in_transaction(lambda cursor: mysql_external.create_all(cursor, rows))
    return [_compare(of, stored[of.key]) for of in declared]


def _compare(declared: ExternalTarget, stored: StoredTarget) -> Created:
    if stored.external_id != declared.external_id:
        return Created.NUMBER_TAKEN
    if stored.is_deleted:
        return Created.DELETED
    return Created.LIVE if stored.owner_id == declared.owner_id else Created.OWNER_FIXED
