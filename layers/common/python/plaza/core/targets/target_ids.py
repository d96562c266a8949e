"""Ids of targets as requests and views have them: the number of a target of Plaza, the text of a
target of the app. Keys, rows and cursors have numbers for both."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from plaza.core.targets import mysql_external, redis_store
from plaza.core.targets.types import EXTERNAL, TYPES, TypedId, number_of
from plaza.infra.http.requests import PathText, read_id
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import NotFound
from plaza.infra.runtime.process import LocalCache

# The id of a number never changes, also after a deletion.
_external_ids: LocalCache[TypedId, str] = LocalCache(max_entries=10_000)


class TypeName(PathText):
    """A type of targets in a path."""

    PATTERN = "^[a-z][a-z0-9_]{0,14}$"
    DESCRIPTION = (
        "Type of the target: `post`, `comment`, `review`, `user`, or one of the deployment's."
    )
    EXAMPLE = "post"
    NOUN = "a type of targets"


class TargetId(PathText):
    """The id of a target in a path."""

    PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
    DESCRIPTION = (
        "Id of the target: a positive integer, or the app's own id of a target of its own type."
    )
    EXAMPLE = "9000001"


def parse_reference(text: str) -> TypedId:
    """Return the target of a ``<type>:<id>``. Raises NotFound as ``parse_id``."""
    target_type, _, target_id = text.partition(":")
    return target_type, parse_id(target_type, target_id)


def parse_id(target_type: str, text: str) -> int:
    """Return the number of an id in a request. Raises NotFound if ``text`` is no id of the type, or
    the type is unknown."""
    declared = TYPES.get(target_type)
    if declared is None:
        raise NotFound(f"{target_type[:15]!r} is not a type of targets.")
    if declared.external is None:
        return read_id(text, target_type)
    if not TargetId.form.fullmatch(text) or not declared.external.pattern.fullmatch(text):
        raise NotFound(f"{text[:64]!r} is not the id of a {target_type}.")
    return number_of(target_type, text)


def render_ids(targets: Iterable[TypedId]) -> dict[TypedId, str]:
    """Return the ids of ``targets`` for views; of a target of the app that was never created its
    number. None for targets of Plaza and what this process has read; else one round trip, and one
    statement for targets without a marker of a live one. Raises MysqlDown."""
    ids = {target: str(target[1]) for target in targets}
    external = [target for target in ids if target[0] in EXTERNAL]
    if not external:
        return ids
    known = _external_ids.get_all(external)
    if missing := [target for target in external if target not in known]:
        read = _read_external_ids(missing)
        for target, external_id in read.items():
            _external_ids.put(target, external_id)
        known |= read
    return ids | known


def _read_external_ids(targets: list[TypedId]) -> dict[TypedId, str]:
    ids: dict[TypedId, str] = {}
    with suppress(RedisDown):
        marks = redis_store.read_marks(targets)
        ids = {target: mark.external_id for target, mark in marks.items() if mark.external_id}
    if missing := [target for target in targets if target not in ids]:
        stored = mysql_external.read_all(missing)
        ids |= {target: row.external_id for target, row in stored.items()}
    return ids
