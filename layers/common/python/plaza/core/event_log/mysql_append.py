"""Append events within the transaction of what happened.

``pass_barrier`` comes first in a transaction, which holds no other lock while it waits there, so
that it is part of no deadlock. Transactions that append do not wait for each other; for a reader,
which asks each two seconds at most, they wait as long as the slowest of them takes, or a second.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.event_log.model import EventDraft
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor

SHARE_BARRIER = "SELECT id FROM event_barrier WHERE id = 1 LOCK IN SHARE MODE"
"""Locks the barrier, shared, until the commit, for ``require_barrier``."""


def pass_barrier(cursor: Cursor) -> None:
    """Lock the barrier, shared, until the commit. One statement, the first of a transaction."""
    [rows] = mysql.read_all(cursor, [SHARE_BARRIER])
    require_barrier(rows)


def require_barrier(rows: Sequence[mysql.Row]) -> None:
    """Raise LookupError if ``SHARE_BARRIER`` locked nothing."""
    if not rows:
        raise LookupError("event_barrier has no row: readers could not wait for this transaction")


def append(cursor: Cursor, drafts: Sequence[EventDraft]) -> None:
    """Append events; the transaction has passed the barrier. One write, none without drafts."""
    if not drafts:
        return
    rows = ", ".join(["(%s, %s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6))"] * len(drafts))
    mysql.send(
        cursor,
        f"""
        INSERT INTO event_log (kind, actor_id, target_type, target_id, resource_id, detail,
            key_id, created_at)
        VALUES {rows}
        """,
        [value for d in drafts for value in (d.kind, d.actor_id, *d.target, *d[3:])],
    )
