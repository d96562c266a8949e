"""Types of targets: of Plaza, and of the app. No I/O.

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
    ``pattern``: of their ids, besides the pattern of all ids."""

    by_first_reaction: bool
    pattern: re.Pattern[str]


class TargetType(NamedTuple):
    """A type of targets; ``external``: of the app, None for Plaza's own."""

    name: str
    external: External | None = None


def parse_types(text: str) -> list[TargetType]:
    """Return the types of the parameter ``TargetTypes``, JSON: ``{"article": {"create": "server"},
    "video": {"create": "first_reaction", "pattern": "[0-9]+"}}``. Raises BadSettings with the
    field's name."""
    declared = parse_objects(
        "TargetTypes", text, _FIELDS, max_chars=MAX_CHARS, max_names=MAX_EXTERNAL
    )
    return [TargetType(name, _parse_type(name, fields)) for name, fields in declared.items()]


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
    name: TargetType(name) for name in ("post", "comment", "review", "user")
}
"""The types that Plaza stores."""
EXTERNAL: Mapping[str, TargetType] = {
    declared.name: declared for declared in parse_types(os.environ.get(SETTING, ""))
}
TYPES: Mapping[str, TargetType] = {**OWN, **EXTERNAL}
