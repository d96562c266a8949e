"""Reacting: through the gate, into the outbox, onto the queue."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.mysql import MysqlDown
from plaza.infra.observability import cause, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.settings import settings
from plaza.infra.spill import spill
from plaza.reactions import mysql_reactions, redis_commits, redis_gate, redis_loads
from plaza.reactions.hot_totals import drop_total
from plaza.reactions.queues import REACTIONS, REBUILDS, Step
from plaza.reactions.reactions import (
    Commit,
    Key,
    Kind,
    OutboxFull,
    Outcome,
    ReactionEvent,
    Target,
    TargetGone,
    TargetMissing,
    TooManyChanges,
    Undecided,
)
from plaza.reactions.redis_gate import Decision
from plaza.targets import There, finding, marking

LOAD_WAIT_S = 0.5  # how long a caller waits for another that loads the target
_LOAD_POLL_S = 0.02
_MAX_TRIES = 5
_MAX_ROWS_LOADED = 10_000
_MIN_ROWS_LOADED = 50


def react(kind: Kind, target: Target, actor_id: int, on: bool) -> Outcome:
    """Turn the actor's reaction on or off. One round trip and one message when all is warm.

    The outcome is exact when two places hold it: Redis, and the queue or MySQL. It is provisional
    while Redis is unavailable, and when neither the queue nor MySQL took it. Raises TargetMissing,
    TargetGone, TooManyChanges; OutboxFull, Undecided, MysqlDown, QueueDown mean: try again.
    """
    key = Key(*target, kind.name, actor_id)
    try:
        decision = _decide(kind, target, actor_id, on)
    except RedisDown as error:
        return _accept_provisionally(ReactionEvent(key, on, None), error)
    if decision.code == "CHANGED":
        drop_total(kind, target)
    if not publish(ReactionEvent(key, on, decision.ver_us)):
        return Outcome(on, None, None)
    return Outcome(on, decision.total, decision.code == "CHANGED")


def publish(event: ReactionEvent) -> bool:
    """Send an event that is in the outbox to the queue, or to MySQL when the queue is unavailable.

    False when neither took it: the sweeper sends it from the outbox.
    """
    try:
        REACTIONS.send(event)
        return True
    except QueueDown as error:
        record("publish_postponed", {"postponed": 1}, **cause(error))
    try:
        spill(REACTIONS.name, REACTIONS.encode(event))
        return True
    except MysqlDown as error:
        record("spill_failed", **cause(error))
        return False


def ask_rebuild(kind: Kind, target: Target) -> None:
    """Request a build of a target's Bloom filter. Without the queue it is requested again later."""
    try:
        REBUILDS.send(Step(kind, target))
    except QueueDown as error:
        record("rebuild_postponed", **cause(error))


def load(
    wanted: Sequence[tuple[Kind, Target]], wait_s: float | None = None
) -> list[tuple[Kind, Target]]:
    """Load targets from MySQL into Redis; returns those that are not loaded after ``wait_s``.

    One caller loads a target, the others wait for it, by default 0.5 s. Two round trips, and what
    ``mysql_reactions.read_snapshots`` costs. Raises RedisDown, MysqlDown.
    """
    deadline = Deadline.in_s(LOAD_WAIT_S if wait_s is None else wait_s)
    todo = list(wanted)
    while todo:
        leases = redis_loads.take_load_leases(todo)
        taken = [
            (*w, lease) for w, lease in zip(todo, leases, strict=True) if lease.code == "TAKEN"
        ]
        left = [w for w, lease in zip(todo, leases, strict=True) if lease.code == "HELD"]
        if taken:
            outboxes = redis_loads.read_outboxes([(k, t, lease.entries) for k, t, lease in taken])
            snapshots = mysql_reactions.read_snapshots(
                [(k, t, actors) for (k, t, _), actors in zip(taken, outboxes, strict=True)],
                _depth(len(taken)),
            )
            codes = redis_loads.hydrate_all(
                [(*of, snapshot) for of, snapshot in zip(taken, snapshots, strict=True)]
            )
            left += [
                (kind, target)
                for (kind, target, _), code in zip(taken, codes, strict=True)
                if code in ("STALE", "INCOMPLETE")
            ]
            _apply_ahead(
                [
                    Commit(kind, target, snapshot.n, snapshot.total, False, ())
                    for (kind, target, _), snapshot, code in zip(
                        taken, snapshots, codes, strict=True
                    )
                    if code == "MORE"
                ]
            )
        if not left or deadline.has_passed:
            return left
        if not taken:
            clock.sleep(_LOAD_POLL_S)
        todo = left
    return []


def _apply_ahead(commits: Sequence[Commit]) -> None:
    """Apply what arrived while targets were loaded; ``commits`` are without rows."""
    for commit, applied in zip(commits, redis_commits.apply_all(commits), strict=True):
        if applied.rebuild:
            ask_rebuild(commit.kind, commit.target)


def _depth(targets_loaded: int) -> int:
    """How many of the newest actors are loaded of each target."""
    share = max(_MIN_ROWS_LOADED, _MAX_ROWS_LOADED // targets_loaded)
    return min(settings().recent_cap, share)


def tombstone(deleted: Sequence[Target]) -> None:
    """Let the gates of deleted targets refuse from now on. Two round trips. Raises RedisDown."""
    marking.mark_gone(deleted)
    redis_loads.tombstone_all(deleted)


def require_there(target: Target) -> None:
    """Raises TargetMissing or TargetGone, and MysqlDown when only MySQL would know."""
    _insist(target, finding.find(*target))


def _decide(kind: Kind, target: Target, actor_id: int, on: bool) -> Decision:
    expected: tuple[bool, int] | None = None
    nonce = secrets.token_hex(6)
    for _ in range(_MAX_TRIES):
        decision = redis_gate.gate(kind, target, actor_id, on, nonce, expected)
        match decision.code:
            case "CHANGED" | "UNCHANGED":
                if not marking.seen_lately(*target):
                    marking.remember_seen(*target)
                return decision
            case "COLD":
                # A loaded target stays, so this process's memory of it is not enough.
                _insist(target, finding.find(*target, remembered=False))
                load([(kind, target)])
            case "UNKNOWN":
                if decision.rebuild:
                    ask_rebuild(kind, target)
                expected = mysql_reactions.read_state(kind, target, actor_id)
            case "GONE":
                _insist(target, There.GONE)
            case "FULL":
                raise OutboxFull(f"{target} has too many unsaved changes", retry_after_s=5)
            case "LIMITED":
                raise TooManyChanges(f"Too many changes of your {kind.name} of {target}", 60)
    raise Undecided(f"{target} changed during every attempt")


def _accept_provisionally(event: ReactionEvent, error: RedisDown) -> Outcome:
    """Redis is unavailable: queue the event without a version; MySQL decides by when it came."""
    target = event.key.target
    if not marking.seen_lately(*target):
        _insist(target, finding.look_up(*target))
    REACTIONS.send(event)
    record("provisional_accepted", {"provisional": 1}, **cause(error))
    return Outcome(event.on, None, None)


def _insist(target: Target, there: There) -> None:
    if there is There.NONE:
        raise TargetMissing(f"There is no {target.type} {target.id}")
    if there is There.GONE:
        raise TargetGone(f"The {target.type} {target.id} was deleted")
