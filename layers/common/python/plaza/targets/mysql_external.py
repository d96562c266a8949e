"""Targets of the app in MySQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

Row = tuple[str, int, str, int | None, str | None]
"""Type, number, id, owner and URL of a target to create."""


class StoredTarget(NamedTuple):
    """What the row of a target says."""

    external_id: str
    owner_id: int | None
    is_deleted: bool


def create_all(cursor: Cursor, rows: Collection[Row]) -> Mapping[tuple[str, int], StoredTarget]:
    """Insert the rows that do not exist, replace the URLs of those that are the same, and return
    what is stored. One packet. Safe to repeat."""
    values = ",".join(cursor.mogrify("(%s, %s, %s, %s, %s)", row) for row in sorted(rows, key=_key))
    # A row of another id, of another owner or that was deleted stays as it is.
    is_same = (
        "external_id = VALUES(external_id) AND owner_id <=> VALUES(owner_id)"
        " AND deleted_at IS NULL AND VALUES(url) IS NOT NULL"
    )
    mysql.send(
        cursor,
        f"INSERT INTO external_target (type, id, external_id, owner_id, url) VALUES {values}"
        f" ON DUPLICATE KEY UPDATE url = IF({is_same}, VALUES(url), url)",
    )
    select = " UNION ALL ".join(
        "SELECT type, id, external_id, owner_id, deleted_at IS NOT NULL FROM external_target"
        f" WHERE type = '{target_type}' AND id IN ({ids})"
        for target_type, ids in sql.render_ids_by_type({_key(row) for row in rows}).items()
    )
    [stored] = mysql.read_all(cursor, [select])
    return {
        (of, number): StoredTarget(text, owner_id, bool(is_deleted))
        for of, number, text, owner_id, is_deleted in stored
    }


def _key(row: Row) -> tuple[str, int]:
    return row[0], row[1]
