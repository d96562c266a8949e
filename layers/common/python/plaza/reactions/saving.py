"""Saving: from the queue into MySQL, then telling Redis what is safe."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from pymysql.cursors import Cursor

from plaza import content, counters
from plaza.counters import ContentCounter
from plaza.infra import mysql, queues
from plaza.infra.observability import cause, record
from plaza.infra.queues import BadRecord
from plaza.infra.redis import RedisDown
from plaza.reactions import mysql_reactions, redis_reactions
from plaza.reactions.reactions import (
    KINDS,
    MOST_ID,
    Key,
    ReactionChanged,
    Row,
    Target,
    applicable,
    newest,
    transitions,
)
from plaza.reactions.redis_reactions import Settlement

SETTLEMENTS = "settlements"  # the queue of settles that failed
_MOST_KEYS = 1000


def save(facts: Sequence[ReactionChanged]) -> None:
    """Save a batch of facts in one transaction of eight statements at most, then settle it.

    Safe to repeat. A settle that fails goes onto a queue of its own: the batch is not done again.
    Raises MysqlDown; QueueDown when Redis is away too, and then the batch does come again.
    """
    settlements, changed = mysql.atomically(lambda cursor: _write(cursor, facts))
    record(
        "reactions_saved", {"accepted": len(facts), "changed": changed}, targets=len(settlements)
    )
    try:
        settle(settlements)
    except RedisDown as error:
        keys = [
            (*s.target, s.kind.name, actor_id) for s in settlements for actor_id, _, _ in s.rows
        ]
        queues.send(SETTLEMENTS, json.dumps(keys, separators=(",", ":")))
        record("settle_postponed", {"settles_postponed": len(settlements)}, **cause(error))


def settle(settlements: Sequence[Settlement]) -> None:
    """Tell Redis what MySQL has. One round trip. Raises RedisDown."""
    settled = redis_reactions.settle_all(settlements)
    for settlement, (code, drift) in zip(settlements, settled, strict=True):
        if drift:
            record(
                "total_corrected",
                {"drift": abs(drift)},
                kind=settlement.kind.name,
                target=str(settlement.target),
                by=drift,
            )
        elif code == "FORGOTTEN":
            record("target_forgotten", {"forgotten": 1}, target=str(settlement.target))


def read_keys(body: str) -> list[Key]:
    """The keys of a settle that failed. Raises BadRecord."""
    try:
        keys = [Key(*key) for key in json.loads(body)]
        good = all(
            key.target_type in KINDS[key.kind].targets
            and all(type(i) is int and 0 < i <= MOST_ID for i in (key.target_id, key.actor_id))
            for key in keys
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadRecord(f"no keys of reactions: {type(error).__name__} {error}") from None
    if not good or not 0 < len(keys) <= _MOST_KEYS:
        raise BadRecord("no keys of reactions")
    return keys


def settle_again(batches: Sequence[Sequence[Key]]) -> None:
    """Settle keys by what MySQL has of them now. Raises MysqlDown, RedisDown."""
    keys = sorted({key for batch in batches for key in batch})
    for start in range(0, len(keys), _MOST_KEYS):
        part = keys[start : start + _MOST_KEYS]
        settle(mysql.atomically(lambda cursor, part=part: _read(cursor, part)))  # type: ignore[misc]


def _write(cursor: Cursor, facts: Sequence[ReactionChanged]) -> tuple[list[Settlement], int]:
    mysql_reactions.append_log(cursor, facts)
    latest = newest(facts)
    # From here to the commit nobody else saves reactions to these targets.
    held = counters.lock_content(cursor, _targets(latest))
    before = mysql_reactions.read_rows(cursor, latest)
    applied = applicable(before, latest)
    if applied:
        mysql_reactions.upsert_rows(cursor, applied.values())
    moves = transitions(before, applied)
    _move_counters(cursor, {counted: by for counted, by in moves.items() if by})
    rows = before | {key: Row(fact.on, fact.ver_us) for key, fact in applied.items()}
    return _settlements(held, moves, rows), len(applied)


def _read(cursor: Cursor, keys: Collection[Key]) -> list[Settlement]:
    held = counters.lock_content(cursor, _targets(keys))
    return _settlements(held, {}, mysql_reactions.read_rows(cursor, keys))


def _targets(keys: Collection[Key]) -> list[Target]:
    return sorted({key.target for key in keys})


def _move_counters(cursor: Cursor, moves: Mapping[tuple[Target, str], int]) -> None:
    if not moves:
        return
    of_content: dict[tuple[str, int], dict[str, int]] = {}
    of_users: dict[tuple[int], dict[str, int]] = {}
    authors = content.read_authors(cursor, {target for target, _ in moves})
    for (target, kind_name), by in moves.items():
        kind = KINDS[kind_name]
        of_content.setdefault(target, {})[kind.total] = by
        if target in authors:
            received = of_users.setdefault((authors[target],), {})
            received[kind.received] = received.get(kind.received, 0) + by
    counters.add_to_content(cursor, of_content)
    counters.add_to_users(cursor, of_users)


def _settlements(
    held: Mapping[tuple[str, int], ContentCounter],
    moves: Mapping[tuple[Target, str], int],
    rows: Mapping[Key, Row],
) -> list[Settlement]:
    by_target: dict[tuple[Target, str], list[tuple[int, int, bool]]] = {}
    for key, row in rows.items():
        by_target.setdefault((key.target, key.kind), []).append((key.actor_id, row.ver_us, row.on))
    moved = {target for (target, _), by in moves.items() if by}
    return [
        Settlement(
            KINDS[kind],
            target,
            held[target].totals[KINDS[kind].total] + moves.get((target, kind), 0),
            held[target].ver + (target in moved),
            entries,
        )
        for (target, kind), entries in by_target.items()
    ]
