"""Types of targets: where the existence, owner and visibility of each are stored. No I/O.

An app's own objects are external targets. A deployment declares their types by the parameter
``TargetTypes``, without code. Plaza stores no copy of such an object: its number takes the place of
an id, and its row has the text of the id, which rows, markers and events carry along.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from plaza.infra.mysql import sql
from plaza.infra.runtime.settings import BadSettings, parse_objects

TypedId = tuple[str, int]
"""The type and the number of a target."""

MAX_EXTERNAL = 8
MAX_CHARS = 500
SETTING = "PLAZA_TARGET_TYPES"
_FIELDS = frozenset({"create", "pattern"})
# Words of paths, of keys and of kinds of notifications.
_TAKEN = (
    "answer comments content external_target offer order report shop shops target users voucher"
)


class External(NamedTuple):
    """How targets of an external type come to be: by a server key, or by their first reaction.
    ``pattern``: of their ids, besides that of all."""

    by_first_reaction: bool
    pattern: re.Pattern[str]


class TargetType(NamedTuple):
    """A type of targets, by SELECTs of rows that begin with its name; ``{ids}`` are ids of targets.

    ``existing``: id, whether it was deleted, and the external id, "" for a target of Plaza.
    ``owners``: ids and owners, packed; "": targets are their own owners. ``hidden``: id, version
    and owner of the hidden ones; "": none is.
    """

    name: str
    existing: str
    owners: str = ""
    hidden: str = ""
    external: External | None = None


def _make_text(name: str) -> TargetType:
    rows = f"FROM content WHERE content_type = '{name}' AND content_id IN ({{ids}})"
    return TargetType(
        name,
        f"SELECT content_type, content_id, deleted_at IS NOT NULL, '' {rows}",
        f"SELECT '{name}', {sql.concat_rows('content_id', 'author_id')} {rows}",
        f"SELECT content_type, content_id, version, author_id {rows} AND hidden_at IS NOT NULL",
    )


def _make_external(name: str, external: External) -> TargetType:
    rows = f"FROM external_target WHERE type = '{name}' AND id IN ({{ids}})"
    return TargetType(
        name,
        f"SELECT type, id, deleted_at IS NOT NULL, external_id {rows}",
        f"SELECT '{name}', {sql.concat_rows('id', 'owner_id')} {rows} AND owner_id IS NOT NULL",
        external=external,
    )


def parse_types(text: str) -> list[TargetType]:
    """Return the types of the parameter ``TargetTypes``, JSON: ``{"article": {"create": "server"},
    "video": {"create": "first_reaction", "pattern": "[0-9]+"}}``. Raises BadSettings with the
    field's name."""
    declared = parse_objects(
        "TargetTypes", text, _FIELDS, max_chars=MAX_CHARS, max_names=MAX_EXTERNAL
    )
    return [_make_external(name, _parse_type(name, fields)) for name, fields in declared.items()]


def _parse_type(name: str, fields: Mapping[str, Any]) -> External:
    at = f"TargetTypes.{name}"
    if name in _TAKEN.split() or name in OWN:
        raise BadSettings(f"{at}: the name is taken")
    create, pattern = fields.get("create"), fields.get("pattern", ".+")
    if create not in ("server", "first_reaction"):
        raise BadSettings(f"{at}.create is neither server nor first_reaction")
    try:
        compiled = re.compile(pattern, re.ASCII)
    except (re.error, TypeError):
        raise BadSettings(f"{at}.pattern is no regular expression") from None
    return External(create == "first_reaction", compiled)


def number_of(target_type: str, external_id: str) -> int:
    """Return the number of an external target: the first 63 bits of SHA-256 of ``type:id``, which
    keys, rows, scripts and cursors use as they use ids. Two ids with one number are a conflict,
    which the text in the row finds."""
    digest = hashlib.sha256(f"{target_type}:{external_id}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


OWN: Mapping[str, TargetType] = {
    declared.name: declared
    for declared in (
        _make_text("post"),
        _make_text("comment"),
        _make_text("review"),
        TargetType("user", "SELECT 'user', id, 0, '' FROM user WHERE id IN ({ids})"),
    )
}
"""The types that Plaza stores."""
EXTERNAL: Mapping[str, TargetType] = {
    declared.name: declared for declared in parse_types(os.environ.get(SETTING, ""))
}
TYPES: Mapping[str, TargetType] = {**OWN, **EXTERNAL}
