"""Saving: from the queue into MySQL, then telling Redis what is safe."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pymysql.cursors import Cursor

from plaza import counters, targets
from plaza.counters import ContentCounter, UserCounter
from plaza.infra import mysql, queues
from plaza.infra.observability import cause, record
from plaza.infra.queues import BadRecord
from plaza.infra.redis import RedisDown
from plaza.reactions import mysql_reactions, redis_rankings, redis_reactions
from plaza.reactions.reactions import (
    FOLLOW,
    KINDS,
    LIKE,
    MOST_ID,
    Key,
    ReactionChanged,
    Row,
    Target,
    applicable,
    newest,
    transitions,
    turned,
)
from plaza.reactions.redis_rankings import PostLikes
from plaza.reactions.redis_reactions import Settlement

SETTLEMENTS = "settlements"  # the queue of settles that failed
FOLLOWS = "follows"  # the queue of (who, whom) whose follow may have changed
_MOST_KEYS = 1000


@dataclass(frozen=True, slots=True)
class Saved:
    """What MySQL has after a commit: of targets, and of the users whose totals moved.

    ``changed_us`` are the versions of the facts that changed something.
    """

    settlements: Sequence[Settlement]
    users: Mapping[int, UserCounter]
    changed_us: Sequence[int] = ()


def save(facts: Sequence[ReactionChanged]) -> None:
    """Save a batch of facts in one transaction of ten statements at most, then settle it.

    Safe to repeat. A settle that fails goes onto a queue of its own: the batch is not done again.
    Raises MysqlDown; QueueDown when Redis is away too or a follow is in the batch, and then the
    batch does come again.
    """
    saved = mysql.atomically(lambda cursor: _write(cursor, facts))
    settlements = saved.settlements
    record(
        "reactions_saved",
        {"accepted": len(facts), "changed": len(saved.changed_us)},
        targets=len(settlements),
    )
    try:
        settle(saved)
        _record_lag(saved.changed_us)
    except RedisDown as error:
        keys = [(*s.target, s.kind.name, actor_id) for s in settlements for actor_id, *_ in s.rows]
        queues.send(SETTLEMENTS, json.dumps(keys, separators=(",", ":")))
        record("settle_postponed", {"settles_postponed": len(settlements)}, **cause(error))
    _tell_of_follows(facts)


def _record_lag(changed_us: Sequence[int]) -> None:
    """How long ago what a batch changed was accepted; Redis has just been told that it is safe."""
    if changed_us:
        now_us = time.time_ns() // 1000
        lags_s = [max(0.0, round((now_us - ver_us) / 1e6, 3)) for ver_us in sorted(changed_us)]
        metrics = {"settle_lag_max_s": lags_s[0], "settle_lag_p50_s": lags_s[len(lags_s) // 2]}
        record("reactions_settled", metrics)


def _tell_of_follows(facts: Sequence[ReactionChanged]) -> None:
    """Name whose follows may have changed, also when this batch changed none: who saved them may
    have been killed before. Raises QueueDown; the batch comes again then, and this with it."""
    pairs = sorted({(f.key.actor_id, f.key.target_id) for f in facts if f.key.kind == FOLLOW.name})
    for start in range(0, len(pairs), _MOST_KEYS):
        part = pairs[start : start + _MOST_KEYS]
        queues.send(FOLLOWS, json.dumps(part, separators=(",", ":")))


def settle(saved: Saved) -> None:
    """Tell Redis what MySQL has. Four round trips at most. Raises RedisDown."""
    settled = redis_reactions.settle_all(saved.settlements)
    counters.project_users(saved.users)
    redis_rankings.project_likes(
        [
            PostLikes(s.target.id, s.dbtotal, s.dbver)
            for s in saved.settlements
            if s.kind is LIKE and s.target.type == "post"
        ]
    )
    limited = [s for s in saved.settlements if s.kind.given]
    # Last: until a follow is in the actor's total, its claim stands for it.
    counters.release((actor, str(s.target), ver) for s in limited for actor, ver, _ in s.rows)
    for settlement, (code, drift) in zip(saved.settlements, settled, strict=True):
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


def _write(cursor: Cursor, facts: Sequence[ReactionChanged]) -> Saved:
    mysql_reactions.pass_log_gate(cursor)
    mysql_reactions.append_log(cursor, facts)
    latest = newest(facts)
    owners = targets.read_owners(cursor, _targets(latest))
    # From here to the commit nobody else saves reactions to these targets.
    held = counters.lock_content(cursor, _targets(latest))
    before = mysql_reactions.read_rows(cursor, latest)
    applied = applicable(before, latest)
    if applied:
        mysql_reactions.upsert_rows(cursor, applied.values())
    turns = turned(before, applied)
    # Also where they cancel out: who is on has changed, and what was read before is old.
    moves = dict.fromkeys(((key.target, key.kind) for key in applied), 0) | transitions(turns)
    _move_counters(cursor, owners, turns, moves)
    rows = before | {key: Row(fact.on, fact.ver_us) for key, fact in applied.items()}
    changed = [fact.ver_us for fact in applied.values()]
    return Saved(_settlements(held, moves, rows), _read_users(cursor, owners, latest), changed)


def _read(cursor: Cursor, keys: Collection[Key]) -> Saved:
    owners = targets.read_owners(cursor, _targets(keys))
    held = counters.lock_content(cursor, _targets(keys))
    rows = mysql_reactions.read_rows(cursor, keys)
    return Saved(_settlements(held, {}, rows), _read_users(cursor, owners, keys))


def _read_users(
    cursor: Cursor, owners: Mapping[tuple[str, int], int], keys: Collection[Key]
) -> dict[int, UserCounter]:
    """The totals of all whom ``keys`` concern, changed or not: who saved them may have been killed
    before Redis was told."""
    actors = {key.actor_id for key in keys if KINDS[key.kind].given}
    return counters.read_users_in(cursor, sorted({*owners.values(), *actors}))


def _targets(keys: Collection[Key]) -> list[Target]:
    return sorted({key.target for key in keys})


def _move_counters(
    cursor: Cursor,
    owners: Mapping[tuple[str, int], int],
    turns: Mapping[Key, int],
    moves: Mapping[tuple[Target, str], int],
) -> None:
    """Add up what turned, in the counters of targets, of their owners and of the actors."""
    of_content: dict[tuple[str, int], dict[str, int]] = {}
    of_users: dict[tuple[int], dict[str, int]] = {}

    def move_user(user_id: int, column: str, by: int) -> None:
        totals = of_users.setdefault((user_id,), {})
        totals[column] = totals.get(column, 0) + by

    for (target, kind_name), by in moves.items():
        kind = KINDS[kind_name]
        of_content.setdefault(target, {})[kind.total] = by
        if by and target in owners:
            move_user(owners[target], kind.received, by)
    for key, by in turns.items():
        if given := KINDS[key.kind].given:
            move_user(key.actor_id, given, by)
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
    moved = {target for target, _ in moves}
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
