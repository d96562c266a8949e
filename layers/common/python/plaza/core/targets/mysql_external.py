"""Targets of the app in MySQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from plaza.core.targets.types import TargetSelects, TypedId
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

Row = tuple[str, int, str, int | None, str | None]
"""Type, number, id, owner and URL of a target to create."""


_OF_IDS = "FROM external_target WHERE type = '{type}' AND id IN ({ids})"
# Shared until the commit: an erasure of the owner waits for what counts for the owner.
_OWNED = f"{_OF_IDS} AND owner_id IS NOT NULL LOCK IN SHARE MODE"
SELECTS = TargetSelects(
    existing=f"SELECT type, id, deleted_at IS NOT NULL, external_id {_OF_IDS}",
    owners=f"(SELECT '{{type}}', {sql.concat_rows('id', 'owner_id')} {_OWNED})",
    rows="""
        SELECT type, id, owner_id, deleted_at
        FROM external_target FORCE INDEX (PRIMARY)
        """,
    describe="targets.external_targets:describe",
)
"""Of all types of the app."""


class StoredTarget(NamedTuple):
    """What the row of a target says."""

    external_id: str
    owner_id: int | None
    is_deleted: bool
    url: str | None


def create_all(cursor: Cursor, rows: Collection[Row]) -> dict[TypedId, StoredTarget]:
    """Insert the rows that do not exist, replace the URLs of those that are the same, and return
    what is stored. One packet. Safe to repeat."""
    values = ", ".join(
        cursor.mogrify("(%s, %s, %s, %s, %s)", row) for row in sorted(rows, key=_key)
    )
    # A row of another id, of another owner or that was deleted stays as it is.
    is_same = (
        "external_id = VALUES(external_id) AND owner_id <=> VALUES(owner_id)"
        " AND deleted_at IS NULL AND VALUES(url) IS NOT NULL"
    )
    mysql.send(
        cursor,
        f"""
        INSERT INTO external_target (type, id, external_id, owner_id, url)
        VALUES {values}
        ON DUPLICATE KEY UPDATE url = IF({is_same}, VALUES(url), url)
        """,
    )
    [stored] = mysql.read_all(cursor, [_select({_key(row) for row in rows})])
    return _read_rows(stored)


def read_all(targets: Collection[TypedId]) -> dict[TypedId, StoredTarget]:
    """Return the ``targets`` that were created. One statement, none without any. Raises
    MysqlDown."""
    return _read_rows(mysql.fetch_all(_select(targets))) if targets else {}


def mark_deleted(target: TypedId, external_id: str) -> bool:
    """Mark a live target as deleted; return whether it was one. One statement. Raises MysqlDown."""
    return bool(
        mysql.write(
            """
            UPDATE external_target
            SET deleted_at = UTC_TIMESTAMP(6)
            WHERE type = %s
              AND id = %s
              AND external_id = %s
              AND deleted_at IS NULL
            """,
            (*target, external_id),
        )
    )


def lock_owned(cursor: Cursor, user_id: int, limit: int) -> list[TypedId]:
    """Lock up to ``limit`` targets of a user until the commit, and return them. One statement."""
    cursor.execute(
        """
        SELECT type, id
        FROM external_target FORCE INDEX (by_owner)
        WHERE owner_id = %s
        ORDER BY type, id
        LIMIT %s
        FOR UPDATE
        """,
        (user_id, limit),
    )
    return [(of, number) for of, number in cursor.fetchall()]


def erase_owner(cursor: Cursor, user_id: int, targets: Collection[TypedId]) -> None:
    """Take the owner from locked targets, and their URLs, which may name the user. One
    statement."""
    of_types = " OR ".join(
        f"type = '{target_type}' AND id IN ({ids})"
        for target_type, ids in sql.render_ids_by_type(targets).items()
    )
    cursor.execute(
        f"""
        UPDATE external_target
        SET owner_id = NULL, url = NULL
        WHERE owner_id = %s
          AND ({of_types})
        """,
        (user_id,),
    )


def _select(targets: Collection[TypedId]) -> str:
    return " UNION ALL ".join(
        f"""
        SELECT type, id, external_id, owner_id, deleted_at IS NOT NULL, url
        FROM external_target
        WHERE type = '{target_type}'
          AND id IN ({ids})
        """
        for target_type, ids in sql.render_ids_by_type(targets).items()
    )


def _read_rows(rows: Iterable[mysql.Row]) -> dict[TypedId, StoredTarget]:
    return {
        (of, number): StoredTarget(text, owner_id, bool(is_deleted), url)
        for of, number, text, owner_id, is_deleted, url in rows
    }


def _key(row: Row) -> TypedId:
    return row[0], row[1]
