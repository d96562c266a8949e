"""Changes of switches in MySQL. Each function runs one statement; without a cursor it raises
MysqlDown."""

from __future__ import annotations

from typing import Any

from plaza.core.switches.model import NO_CHANGE, SWITCHES, SwitchChange, Switches
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

_COLUMNS = "version, document, reason, changed_by, changed_at"
_READ_NEWEST = f"SELECT {_COLUMNS} FROM switch_change ORDER BY version DESC LIMIT 1"


def read_newest() -> SwitchChange:
    """Return the newest change. Raises ValueError or TypeError if it cannot be decoded."""
    rows = mysql.fetch_all(_READ_NEWEST)
    return _change(rows[0]) if rows else NO_CHANGE


def lock_newest(cursor: Cursor) -> SwitchChange:
    """Return the newest change, locked until the commit."""
    cursor.execute(f"{_READ_NEWEST} FOR UPDATE")
    row = cursor.fetchone()
    return _change(row) if row else NO_CHANGE


def insert(cursor: Cursor, version: int, switches: Switches, reason: str, operator_id: int) -> bool:
    """Store a change; return False if another one has its version."""
    return (
        cursor.execute(
            """
            INSERT INTO switch_change (version, document, reason, changed_by, changed_at)
            VALUES (%s, %s, %s, %s, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE version = switch_change.version
            """,
            (version, SWITCHES.encode(switches), reason, operator_id),
        )
        == 1
    )


def read_changes(below: int, limit: int) -> list[SwitchChange]:
    """Return changes with versions below ``below``, newest first."""
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM switch_change
        WHERE version < %s
        ORDER BY version DESC LIMIT {limit:d}
        """,
        (below,),
    )
    return [_change(row) for row in rows]


def _change(row: tuple[Any, ...]) -> SwitchChange:
    version, document, reason, changed_by, changed_at = row
    return SwitchChange(
        version, SWITCHES.decode(document), reason, changed_by, sql.to_us(changed_at)
    )
