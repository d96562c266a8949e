"""A consumer of likes as commonly written: for each fact look, write, count; a commit per batch.

It is not exact: a fact that comes late undoes a newer one.
"""

from __future__ import annotations

from collections.abc import Sequence

from pymysql.cursors import Cursor

from plaza.reactions.reactions import ReactionEvent

TABLES = (
    "CREATE TABLE row_by_row LIKE reaction",
    "CREATE TABLE row_by_row_counter LIKE content_counter",
)


def save(cursor: Cursor, facts: Sequence[ReactionEvent]) -> None:
    """Save a batch; the caller commits."""
    for fact in facts:
        target_type, target_id, kind, actor_id = fact.key
        cursor.execute(
            "SELECT state FROM row_by_row WHERE target_type = %s AND target_id = %s"
            " AND kind = %s AND actor_id = %s",
            fact.key,
        )
        row = cursor.fetchone()
        was_on = row is not None and row[0] == 1
        if fact.on == was_on:
            continue
        cursor.execute(
            "INSERT INTO row_by_row (target_type, target_id, kind, actor_id, state, ver)"
            " VALUES (%s, %s, %s, %s, %s, %s)"
            " ON DUPLICATE KEY UPDATE state = VALUES(state), ver = VALUES(ver)",
            (target_type, target_id, kind, actor_id, int(fact.on), fact.ver_us),
        )
        cursor.execute(
            f"INSERT INTO row_by_row_counter (target_type, target_id, {kind}_total)"
            f" VALUES (%s, %s, 1) ON DUPLICATE KEY UPDATE {kind}_total = {kind}_total + %s",
            (target_type, target_id, 1 if fact.on else -1),
        )
