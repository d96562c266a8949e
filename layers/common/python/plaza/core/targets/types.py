"""Types of targets: of Plaza, and of the app. No I/O.

The manifests of this deployment's wings declare the types that Plaza stores; a type's SELECTs are
loaded when they are first used.

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

from plaza.infra.contexts import list_offers, load
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


_OF_THE_APP = "core", "targets.mysql_external:SELECTS"


class External(NamedTuple):
    """How targets of an external type come to be: by a server key, or by their first reaction.
    ``pattern``: of their ids, besides the pattern of all ids."""

    by_first_reaction: bool
    pattern: re.Pattern[str]


class TargetSelects(NamedTuple):
    """How a context stores targets of a type: SELECTs as templates, where ``{type}`` is the name of
    the type and ``{ids}`` are ids.

    ``existing``: type, id, whether it was deleted, and the external id, "" for a target of Plaza.
    ``owners``: type, and ids and owners, packed; "": targets are their own owners. ``hidden``:
    type, id, version and owner of the hidden ones; "": none is. ``rows``: the columns type, id,
    owner_id and deleted_at of all targets of the table, for joins; "" as ``owners``. ``describe``:
    name, below the wing, of a function that returns the descriptions of targets; "": they have an
    id only.
    """

    existing: str
    owners: str = ""
    hidden: str = ""
    rows: str = ""
    describe: str = ""


class TargetType(NamedTuple):
    """A type of targets; ``source``: name, below the ``wing``, of its SELECTs; ``external``: of the
    app, None for Plaza's own."""

    name: str
    wing: str
    source: str
    external: External | None = None

    @property
    def selects(self) -> TargetSelects:
        """Return the SELECTs of the type. The first use loads their module."""
        selects: TargetSelects = load(self.wing, self.source)
        return selects


def parse_types(text: str) -> list[TargetType]:
    """Return the types of the parameter ``TargetTypes``, JSON: ``{"article": {"create": "server"},
    "video": {"create": "first_reaction", "pattern": "[0-9]+"}}``. Raises BadSettings with the
    field's name."""
    declared = parse_objects(
        "TargetTypes", text, _FIELDS, max_chars=MAX_CHARS, max_names=MAX_EXTERNAL
    )
    return [
        TargetType(name, *_OF_THE_APP, _parse_type(name, fields))
        for name, fields in declared.items()
    ]


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


def list_owned() -> list[str]:
    """Return the SELECTs of all targets that may have an owner besides themselves, as ``rows`` of
    ``TargetSelects``: of each table once."""
    sources = dict.fromkeys([_OF_THE_APP, *((of.wing, of.source) for of in OWN.values())])
    rows = [load(wing, source).rows for wing, source in sources]
    return [*filter(None, dict.fromkeys(rows))]


def number_of(target_type: str, external_id: str) -> int:
    """Return the number of an external target: the first 63 bits of SHA-256 of ``type:id``, which
    keys, rows, scripts and cursors use as they use ids. Two ids with one number are a conflict,
    which the text in the row finds."""
    digest = hashlib.sha256(f"{target_type}:{external_id}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


OWN: Mapping[str, TargetType] = {
    name: TargetType(name, wing, source)
    for wing, _, source in list_offers("types")
    for name in [source.rpartition(":")[2].lower()]
}
"""The types that Plaza stores."""
EXTERNAL: Mapping[str, TargetType] = {
    declared.name: declared for declared in parse_types(os.environ.get(SETTING, ""))
}
TYPES: Mapping[str, TargetType] = {**OWN, **EXTERNAL}
