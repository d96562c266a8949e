"""One statement that writes a batch of rows: the limit of any consumer."""

from collections.abc import Sequence

from pymysql.cursors import Cursor

from plaza.core.reactions.model import ReactionEvent

TABLES = ("CREATE TABLE bulk_upsert LIKE reaction",)


def save(cursor: Cursor, events: Sequence[ReactionEvent]) -> None:
    rows = ",".join(
        "('{}',{},'{}',{},{:d},{})".format(*event.key, event.on, event.version_us)
        for event in sorted(events, key=lambda event: event.key)
    )
    cursor.execute(
        "INSERT INTO bulk_upsert (target_type, target_id, kind, actor_id, state, version)"
        f" VALUES {rows} ON DUPLICATE KEY UPDATE state = VALUES(state), version = VALUES(version)"
    )
