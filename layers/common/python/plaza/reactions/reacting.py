"""Reacting: through the gate, into the outbox, onto the queue."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from plaza import targets
from plaza.infra import queues
from plaza.infra.observability import cause, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.settings import settings
from plaza.reactions import mysql_reactions, redis_reactions
from plaza.reactions.hot_totals import drop_total
from plaza.reactions.mysql_reactions import Snapshot
from plaza.reactions.reactions import (
    Key,
    Kind,
    OutboxFull,
    ReactionChanged,
    Target,
    TargetGone,
    TargetMissing,
    Undecided,
)
from plaza.reactions.redis_reactions import Decision
from plaza.targets import There

REACTIONS = "reactions"  # the queue of facts
REBUILDS = "rebuilds"  # the queue of targets whose Bloom filter is to be built
_MOST_TRIES = 5
_MOST_HYDRATIONS = 3
_MOST_ROWS_HYDRATED = 10_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reaction came to. ``total`` and ``changed`` are None when only MySQL will decide."""

    on: bool
    total: int | None
    changed: bool | None

    @property
    def exact(self) -> bool:
        """False for an intent: taken while Redis was away, decided later."""
        return self.total is not None


def react(kind: Kind, target: Target, actor_id: int, on: bool) -> Outcome:
    """Turn the actor's reaction on or off.

    Raises TargetMissing, TargetGone; OutboxFull, Undecided, MysqlDown, QueueDown mean: try again.
    """
    try:
        decision = _decide(kind, target, actor_id, on)
    except RedisDown as error:
        return _take_intent(kind, target, actor_id, on, error)
    if decision.code == "CHANGED":
        drop_total(kind, target)
        key = Key(*target, kind.name, actor_id)
        publish(ReactionChanged(key, on, decision.ver_us, decision.total))
    if decision.rebuild:
        ask_rebuild(kind, target)
    return Outcome(on, decision.total, decision.code == "CHANGED")


def publish(fact: ReactionChanged) -> None:
    """Send a fact that is in the outbox. When the queue is away the sweeper sends it later."""
    try:
        queues.send(REACTIONS, fact.to_json())
    except QueueDown as error:
        record("publish_postponed", {"postponed": 1}, **cause(error))


def ask_rebuild(kind: Kind, target: Target) -> None:
    """Have the Bloom filter of a target built. When the queue is away the gate asks again later."""
    body = {"kind": kind.name, "target_type": target.type, "target_id": target.id}
    try:
        queues.send(REBUILDS, json.dumps(body, separators=(",", ":")))
    except QueueDown as error:
        record("rebuild_postponed", **cause(error))


def hydrate(wanted: Sequence[tuple[Kind, Target]]) -> list[Snapshot]:
    """Bring targets that aren't in Redis back from MySQL; what was read of them, in order.

    A target that moves on while it is read is read again; one that never stands still is left out
    of Redis. Raises RedisDown, MysqlDown.
    """
    depth = max(50, min(settings().recent_cap, _MOST_ROWS_HYDRATED // max(len(wanted), 1)))
    snapshots: dict[tuple[Kind, Target], Snapshot] = {}
    todo = list(wanted)
    for _ in range(_MOST_HYDRATIONS):
        if not todo:
            break
        read = mysql_reactions.read_snapshots(todo, depth)
        snapshots.update(zip(todo, read, strict=True))
        codes = redis_reactions.hydrate_all([(*w, s) for w, s in zip(todo, read, strict=True)])
        # A consumer may have committed after the read and settled before the target was back.
        now = mysql_reactions.read_counters(todo)
        moved = [
            w
            for w, s, code, (_, dbver) in zip(todo, read, codes, now, strict=True)
            if code == "HYDRATED" and dbver != s.dbver
        ]
        if moved:
            redis_reactions.forget_all(moved)
        todo = [w for w, c in zip(todo, codes, strict=True) if c == "FENCED" or w in moved]
    return [snapshots[w] for w in wanted]


def bury(deleted: Sequence[Target]) -> None:
    """Let the gates of deleted targets refuse from now on. Two round trips. Raises RedisDown."""
    targets.mark_gone(deleted)
    redis_reactions.bury_all(deleted)


def require_there(target: Target) -> None:
    """Raises TargetMissing or TargetGone, and MysqlDown when only MySQL would know."""
    _insist(target, targets.find(*target))


def _decide(kind: Kind, target: Target, actor_id: int, on: bool) -> Decision:
    hint: tuple[bool, int] | None = None
    for _ in range(_MOST_TRIES):
        decision = redis_reactions.gate(kind, target, actor_id, on, hint)
        match decision.code:
            case "CHANGED" | "UNCHANGED":
                if not targets.seen_lately(*target):
                    targets.remember_seen(*target)
                return decision
            case "COLD":
                # What is hydrated stays, so it takes more than what this process remembers.
                _insist(target, targets.find(*target, remembered=False))
                hydrate([(kind, target)])
            case "UNKNOWN":
                if decision.rebuild:
                    ask_rebuild(kind, target)
                hint = mysql_reactions.read_hint(kind, target, actor_id)
            case "GONE":
                _insist(target, There.GONE)
            case "FULL":
                raise OutboxFull(f"{target} has too many unsaved changes", retry_after_s=5)
    raise Undecided(f"{target} changed each time it was read")


def _take_intent(kind: Kind, target: Target, actor_id: int, on: bool, error: RedisDown) -> Outcome:
    """Redis is away: put the wish on the queue with a version from the clock; MySQL decides."""
    if not targets.seen_lately(*target):
        _insist(target, targets.look_up(*target))
    key = Key(*target, kind.name, actor_id)
    queues.send(REACTIONS, ReactionChanged(key, on, time.time_ns() // 1000, None).to_json())
    record("intent_taken", {"intents": 1}, **cause(error))
    return Outcome(on, None, None)


def _insist(target: Target, there: There) -> None:
    if there is There.NONE:
        raise TargetMissing(f"There is no {target.type} {target.id}")
    if there is There.GONE:
        raise TargetGone(f"The {target.type} {target.id} was deleted")
