"""Types of targets: where the existence, owner and visibility of each are stored. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from plaza.infra.mysql import sql


class TargetType(NamedTuple):
    """A type of targets, by SELECTs of rows that begin with its name; ``{ids}`` are ids of targets.

    ``existing``: id, and whether it was deleted. ``owners``: ids and owners, packed; "": targets
    are their own owners. ``hidden``: id, version and owner of the hidden ones; "": none is.
    """

    name: str
    existing: str
    owners: str = ""
    hidden: str = ""


def _make_text(name: str) -> TargetType:
    rows = f"FROM content WHERE content_type = '{name}' AND content_id IN ({{ids}})"
    return TargetType(
        name,
        f"SELECT content_type, content_id, deleted_at IS NOT NULL {rows}",
        f"SELECT '{name}', {sql.concat_rows('content_id', 'author_id')} {rows}",
        f"SELECT content_type, content_id, version, author_id {rows} AND hidden_at IS NOT NULL",
    )


_USER = TargetType("user", "SELECT 'user', id, 0 FROM user WHERE id IN ({ids})")
TYPES: Mapping[str, TargetType] = {
    declared.name: declared
    for declared in (_make_text("post"), _make_text("comment"), _make_text("review"), _USER)
}
