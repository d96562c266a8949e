"""One statement that writes a batch of rows and does nothing else: the limit of a consumer."""

from __future__ import annotations

from collections.abc import Sequence

from pymysql.cursors import Cursor

from plaza.reactions.reactions import ReactionEvent

TABLES = ("CREATE TABLE bulk_upsert LIKE reaction",)


def save(cursor: Cursor, facts: Sequence[ReactionEvent]) -> None:
    """Save a batch, in the order of its keys; the caller commits."""
    rows = ",".join(
        "('{}',{},'{}',{},{:d},{})".format(*fact.key, fact.on, fact.ver_us)
        for fact in sorted(facts, key=lambda fact: fact.key)
    )
    cursor.execute(
        "INSERT INTO bulk_upsert (target_type, target_id, kind, actor_id, state, ver)"
        f" VALUES {rows} ON DUPLICATE KEY UPDATE state = VALUES(state), ver = VALUES(ver)"
    )
