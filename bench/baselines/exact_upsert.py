"""A bulk upsert of row, log row and counter: what exactness needs and nothing more, so the limit of
the consumer.

Counters come first: their locks order the transactions of a target, and rows of the log have the
versions. It neither reads the rows before nor owners, and notifies no other process: it trusts that
every event is new and changes the total.
"""

from collections import Counter
from collections.abc import Sequence

from pymysql.cursors import Cursor

from plaza.reactions.model import KINDS, ReactionEvent

TABLES = (
    "CREATE TABLE exact_upsert LIKE reaction",
    "CREATE TABLE exact_upsert_log LIKE reaction_log",
    "CREATE TABLE exact_upsert_counter LIKE content_counter",
)
COPY_COUNTERS = "INSERT INTO exact_upsert_counter SELECT * FROM content_counter"
Counters = dict[tuple[str, int, str], tuple[int, ...]]
"""(type, id, kind) -> version and total after the batch."""


def save(cursor: Cursor, events: Sequence[ReactionEvent]) -> None:
    """Save a batch in four statements; the caller commits."""
    ordered = sorted(events, key=lambda event: event.key)
    counters = _add_to_counters(cursor, ordered)
    _append_log(cursor, ordered, counters)
    _upsert_rows(cursor, ordered)


def _add_to_counters(cursor: Cursor, events: Sequence[ReactionEvent]) -> Counters:
    deltas: dict[tuple[str, int], Counter[str]] = {}
    for event in events:
        kind = KINDS[event.key.kind]
        of_target = deltas.setdefault(event.key[:2], Counter())
        of_target[kind.total] += 1 if event.on else -1
        of_target[kind.version] = 1
    kinds = [kind for kind in KINDS.values() if any(kind.total in by for by in deltas.values())]
    names = [name for kind in kinds for name in (kind.version, kind.total)]
    rows = ",".join(
        "('{}',{},{})".format(*target, ",".join(str(by[name]) for name in names))
        for target, by in deltas.items()
    )
    sums = ", ".join(f"{name} = exact_upsert_counter.{name} + VALUES({name})" for name in names)
    cursor.execute(
        f"INSERT INTO exact_upsert_counter (target_type, target_id, {', '.join(names)})"
        f" VALUES {rows} ON DUPLICATE KEY UPDATE {sums}"
    )
    ids: dict[str, list[str]] = {}
    for target_type, target_id in deltas:
        ids.setdefault(target_type, []).append(str(target_id))
    cursor.execute(
        " UNION ALL ".join(
            f"SELECT target_type, target_id, {', '.join(names)} FROM exact_upsert_counter"
            f" WHERE target_type = '{target_type}' AND target_id IN ({','.join(of_type)})"
            for target_type, of_type in ids.items()
        )
    )
    return {
        (*row[:2], kind.name): row[2 + 2 * index : 4 + 2 * index]
        for row in cursor.fetchall()
        for index, kind in enumerate(kinds)
    }


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
