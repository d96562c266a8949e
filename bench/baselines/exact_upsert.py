"""A bulk upsert of row, log row and counter: what exactness needs and nothing more, so the limit of
the consumer.

Counters come first: their locks order the transactions of a target, and rows of the log have the
versions. It neither reads the rows before nor owners, and notifies no other process: it trusts that
every event is new and changes the total.
"""

from collections import Counter
from collections.abc import Sequence

from pymysql.cursors import Cursor

from plaza.core.reactions.kinds import KINDS
from plaza.core.reactions.model import ReactionEvent

TABLES = (
    "CREATE TABLE exact_upsert LIKE reaction",
    "CREATE TABLE exact_upsert_log LIKE reaction_log",
    "CREATE TABLE exact_upsert_counter LIKE counter",
)
COPY_COUNTERS = "INSERT INTO exact_upsert_counter SELECT * FROM counter"
Counters = dict[tuple[str, int, str], tuple[int, ...]]
"""(type, id, kind) -> version and total after the batch."""


def save(cursor: Cursor, events: Sequence[ReactionEvent]) -> None:
    """Save a batch in four statements; the caller commits."""
    ordered = sorted(events, key=lambda event: event.key)
    counters = _add_to_counters(cursor, ordered)
    _append_log(cursor, ordered, counters)
    _upsert_rows(cursor, ordered)


def _add_to_counters(cursor: Cursor, events: Sequence[ReactionEvent]) -> Counters:
    deltas: Counter[tuple[str, int, str]] = Counter()
    for event in events:
        deltas[event.key[:3]] += 1 if event.on else -1
    ranked = {(of, name) for name, kind in KINDS.items() for of in kind.ranked}
    rows = ",".join(
        "('{}',{},'{}',{},1,{})".format(*key, by, by if (key[0], key[2]) in ranked else "NULL")
        for key, by in deltas.items()
    )
    cursor.execute(
        "INSERT INTO exact_upsert_counter (target_type, target_id, kind, total, version, ranked)"
        f" VALUES {rows} ON DUPLICATE KEY UPDATE"
        " ranked = exact_upsert_counter.total + VALUES(ranked),"
        " total = exact_upsert_counter.total + VALUES(total),"
        " version = exact_upsert_counter.version + 1"
    )
    ids: dict[tuple[str, str], list[str]] = {}
    for target_type, target_id, kind in deltas:
        ids.setdefault((target_type, kind), []).append(str(target_id))
    cursor.execute(
        " UNION ALL ".join(
            "SELECT target_type, target_id, kind, version, total FROM exact_upsert_counter"
            f" WHERE target_type = '{target_type}' AND kind = '{kind}'"
            f" AND target_id IN ({','.join(of_kind)})"
            for (target_type, kind), of_kind in ids.items()
        )
    )
    return {row[:3]: row[3:] for row in cursor.fetchall()}


def _append_log(cursor: Cursor, events: Sequence[ReactionEvent], counters: Counters) -> None:
    rows = ",".join(
        "('{}',{},'{}',{},{},{:d},1,{},{},CURRENT_DATE,'{}')".format(
            *event.key, event.version_us, event.on, *counters[event.key[:3]], event.request_id
        )
        for event in events
    )
    cursor.execute(
        "INSERT IGNORE INTO exact_upsert_log (target_type, target_id, kind, actor_id, version,"
        f" state, change_by, db_version, total, create_date, request_id) VALUES {rows}"
    )


def _upsert_rows(cursor: Cursor, events: Sequence[ReactionEvent]) -> None:
    rows = ",".join(
        "('{}',{},'{}',{},{:d},{})".format(*event.key, event.on, event.version_us)
        for event in events
    )
    cursor.execute(
        "INSERT INTO exact_upsert (target_type, target_id, kind, actor_id, state, version)"
        f" VALUES {rows} ON DUPLICATE KEY UPDATE"
        " state = IF(VALUES(version) > exact_upsert.version, VALUES(state), exact_upsert.state),"
        " version = GREATEST(exact_upsert.version, VALUES(version))"
    )
