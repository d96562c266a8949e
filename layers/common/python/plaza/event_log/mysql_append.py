"""Append events within the transaction of what happened.

``pass_gate`` comes first in a transaction, which holds no other lock while it waits there, so that
it is part of no deadlock. Transactions that append do not wait for each other; for a reader,
which asks each two seconds at most, they wait as long as the slowest of them takes, or a second.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.event_log.model import EventDraft
from plaza.infra.mysql.mysql import Cursor


def pass_gate(cursor: Cursor) -> None:
    """Lock the gate, shared, until the commit. One statement, the first of a transaction."""
    if not cursor.execute("SELECT id FROM event_gate WHERE id = 1 LOCK IN SHARE MODE"):
        raise LookupError("event_gate has no row: readers could not wait for this transaction")


def append(cursor: Cursor, drafts: Sequence[EventDraft]) -> None:
    """Append events; the transaction has passed the gate. One statement, none without drafts."""
    if not drafts:
        return
    rows = ", ".join(["(%s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6))"] * len(drafts))
    cursor.execute(
        f"""
        INSERT INTO event_log (kind, actor_id, target_type, target_id, resource_id, detail,
            created_at)
        VALUES {rows}
        """,
        [value for d in drafts for value in (d.kind, d.actor_id, *d.target, *d[3:])],
    )
