"""Targets of the app: their creation, their deletion and their ids.

The id of a number never changes, also after a deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from plaza.infra.mysql import mysql
from plaza.infra.runtime.errors import NotFound
from plaza.targets import mysql_external, redis_store
from plaza.targets.model import Existence
from plaza.targets.mysql_external import StoredTarget
from plaza.targets.types import EXTERNAL, EXTERNAL_ID, number_of

MAX_CREATED = 100  # in one call


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
    stored = mysql.run_in_transaction(
        lambda cursor: mysql_external.create_all(
            cursor, [(*of.key, of.external_id, of.owner_id, of.url) for of in declared]
        )
    )
    created = [_compare(of, stored[of.key]) for of in declared]
    live = [of.key for of, result in zip(declared, created, strict=True) if result is Created.LIVE]
    redis_store.overwrite_marks(live, Existence.LIVE)
    return created


def _compare(declared: ExternalTarget, stored: StoredTarget) -> Created:
    if stored.external_id != declared.external_id:
        return Created.NUMBER_TAKEN
    if stored.is_deleted:
        return Created.DELETED
    return Created.LIVE if stored.owner_id == declared.owner_id else Created.OWNER_FIXED
