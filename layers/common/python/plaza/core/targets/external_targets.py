"""Targets of the app: their creation and their deletion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from plaza.core.targets import announce, lookup, markers, mysql_external, mysql_store, redis_store
from plaza.core.targets.model import Description, Existence, Mark
from plaza.core.targets.mysql_external import StoredTarget, read_all
from plaza.core.targets.types import EXTERNAL, TypedId, number_of
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import Conflict

__all__ = [
    "MAX_CREATED",
    "TOKENS_PER_CREATION",
    "Created",
    "ExternalTarget",
    "NumberTaken",
    "OwnerFixed",
    "StoredTarget",
    "create_all",
    "delete",
    "describe",
    "erase_owner",
    "find",
    "read_all",
    "refresh",
]

MAX_CREATED = 100  # in one call
TOKENS_PER_CREATION = 10  # of the limit of a caller


class NumberTaken(Conflict):
    """Another id of the type has the same number, of 63 bits, and was first."""

    slug = "number-taken"
    title = "Number taken"
    example = "8f3a has the number of another article."


class OwnerFixed(Conflict):
    """A target of the app has another owner, or none: the one of its creation stays."""

    slug = "owner-fixed"
    title = "Owner fixed"
    example = "The article 8f3a has another owner, or none."


class ExternalTarget(NamedTuple):
    """An object of the app as it declares it; ``owner_id``: None without an owner."""

    type: str
    external_id: str
    owner_id: int | None = None
    url: str | None = None

    @property
    def key(self) -> TypedId:
        """Return the target as reactions name it."""
        return self.type, number_of(self.type, self.external_id)


class Created(Enum):
    """What a creation did; all but LIVE refuse it."""

    LIVE = "live"
    DELETED = "deleted"  # a deleted target is not made again
    OWNER_FIXED = "owner-fixed"  # it has another owner, or none
    NUMBER_TAKEN = "number-taken"  # by another id of the same number
    UNKNOWN_OWNER = "unknown-owner"  # no user has the id that was named


def create_all(declared: Sequence[ExternalTarget]) -> list[Created]:
    """Create the ``declared`` targets that are missing, and replace the URLs of the others; return
    what became of each. Safe to repeat.

    Two packets and one round trip. Raises MysqlDown, RedisDown.
    """
    if not declared:
        return []
    created = _store(declared)
    redis_store.overwrite_marks(
        {
            of.key: Mark(Existence.LIVE, of.external_id)
            for of, result in zip(declared, created, strict=True)
            if result is Created.LIVE
        }
    )
    return created


def find(target: TypedId, external_id: str, charge: Callable[[], None] | None = None) -> Existence:
    """Return the existence in MySQL of the target with this id, and store it as marker.

    With ``charge``, which is called before, a missing target is created, without an owner, if first
    reactions create targets of its type. One statement and one round trip; two packets more for a
    creation. Raises NumberTaken, TooManyLookups, MysqlDown, and what ``charge`` raises.
    """
    lookup.spend_budget()
    mark = mysql_store.read_existence([target])[target]
    external = EXTERNAL[target[0]].external
    is_created = external is not None and external.by_first_reaction
    if mark.existence is Existence.MISSING and is_created and charge is not None:
        charge()
        _store([ExternalTarget(target[0], external_id)])
        # By another caller, maybe, who may have deleted it since.
        mark = mysql_store.read_existence([target])[target]
    if mark.existence is Existence.LIVE and mark.external_id != external_id:
        raise NumberTaken(f"{external_id} has the number of another {target[0]}.")
    with suppress(RedisDown):  # the marker only saves later statements
        redis_store.overwrite_marks({target: mark})
    return mark.existence


def erase_owner(cursor: Cursor, user_id: int, limit: int) -> list[TypedId]:
    """Take the owner from up to ``limit`` targets of a user, and return them. Transactions that
    count reactions for the owner ended before, or read that there is none. Two statements."""
    owned = mysql_external.lock_owned(cursor, user_id, limit)
    if owned:
        mysql_external.erase_owner(cursor, user_id, owned)
    return owned


def delete(target: TypedId, external_id: str) -> Existence:
    """Delete a target; its rows stay. Return what it was before. Safe to repeat. One statement, or
    two, one message and one round trip. Raises MysqlDown, RedisDown."""
    announced = announce.announce_write(*target)
    was = Existence.LIVE
    if not mysql_external.mark_deleted(target, external_id):
        stored = read_all([target]).get(target)
        if stored is None or stored.external_id != external_id:
            return Existence.MISSING
        was = Existence.DELETED
    if announced:
        with suppress(RedisDown):  # the consumer of the message repeats it
            markers.mark_deleted([target])
    else:
        markers.mark_deleted([target])
    return was


def describe(targets: Collection[TypedId]) -> dict[TypedId, Description]:
    """Return the ids and URLs of ``targets`` that are not deleted. One statement. Raises
    MysqlDown."""
    return {
        target: Description(row.external_id, url=row.url)
        for target, row in read_all(targets).items()
        if not row.is_deleted
    }


def refresh(targets: Collection[TypedId]) -> dict[TypedId, int]:
    """Mark ``targets`` as MySQL has them now; return the owners of deleted ones. One statement and
    one round trip. Raises MysqlDown, RedisDown."""
    stored = read_all(targets)
    deleted = {target: row.owner_id for target, row in stored.items() if row.is_deleted}
    if deleted:
        markers.mark_deleted([*deleted])
    return {target: owner_id for target, owner_id in deleted.items() if owner_id is not None}


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
