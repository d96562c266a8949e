"""A common consumer of likes: read, write and count each event; one commit a batch.

It is not exact: a late event overwrites a newer one.
"""

from collections.abc import Sequence

from pymysql.cursors import Cursor

from plaza.core.reactions.model import ReactionEvent

TABLES = (
    "CREATE TABLE row_by_row LIKE reaction",
    "CREATE TABLE row_by_row_counter LIKE counter",
)


def save(cursor: Cursor, events: Sequence[ReactionEvent]) -> None:
    """Save a batch; the caller commits."""
    for event in events:
        target_type, target_id, kind, actor_id = event.key
        cursor.execute(
            "SELECT state FROM row_by_row WHERE target_type = %s AND target_id = %s"
            " AND kind = %s AND actor_id = %s",
            event.key,
        )
        row = cursor.fetchone()
        was_on = row is not None and row[0] == 1
        if event.on == was_on:
            continue
        cursor.execute(
            "INSERT INTO row_by_row (target_type, target_id, kind, actor_id, state, version)"
            " VALUES (%s, %s, %s, %s, %s, %s)"
            " ON DUPLICATE KEY UPDATE state = VALUES(state), version = VALUES(version)",
            (target_type, target_id, kind, actor_id, int(event.on), event.version_us),
        )
        cursor.execute(
            "INSERT INTO row_by_row_counter (target_type, target_id, kind, total)"
            " VALUES (%s, %s, %s, 1) ON DUPLICATE KEY UPDATE total = total + %s",
            (target_type, target_id, kind, 1 if event.on else -1),
        )
