"""Reacting: through the gate, into the outbox, onto the queue."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.mysql import MysqlDown
from plaza.infra.observability import error_fields, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.settings import settings
from plaza.infra.spill import spill
from plaza.reactions import mysql_reactions, redis_commits, redis_gate, redis_hydration
from plaza.reactions.hot_totals import drop_total
from plaza.reactions.model import (
    Commit,
    Kind,
    OutboxFull,
    Outcome,
    ReactionEvent,
    ReactionKey,
    ReactionUndecided,
    Target,
    TargetDeleted,
    TargetMissing,
    TooManyChanges,
)
from plaza.reactions.queues import REACTIONS, REBUILDS, BloomBuildStep
from plaza.reactions.redis_gate import GateDecision
from plaza.targets import Existence, lookup, markers

HYDRATE_WAIT_S = 0.5  # how long a caller waits for another that loads the target
_HYDRATE_POLL_S = 0.02
_MAX_ATTEMPTS = 5
_MAX_ROWS_LOADED = 10_000
_MIN_ROWS_LOADED = 50


def react(kind: Kind, target: Target, actor_id: int, on: bool) -> Outcome:
    """Turn the actor's reaction on or off. One round trip and one message when all is warm.

    The outcome is exact when two places hold it: Redis, and the queue or MySQL. It is provisional
    while Redis is unavailable, and when neither the queue nor MySQL took it. Raises TargetMissing,
    TargetDeleted, TooManyChanges; OutboxFull, ReactionUndecided, MysqlDown, QueueDown mean: try again.
    """
    key = ReactionKey(*target, kind.name, actor_id)
    try:
        decision = _decide(kind, target, actor_id, on)
    except RedisDown as error:
        return _accept_provisionally(ReactionEvent(key, on, None), error)
    if decision.code == "CHANGED":
        drop_total(kind, target)
    if not publish(ReactionEvent(key, on, decision.version_us)):
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
        record("publish_postponed", {"postponed": 1}, **error_fields(error))
    try:
        spill(REACTIONS.name, REACTIONS.encode(event))
        return True
    except MysqlDown as error:
        record("spill_failed", **error_fields(error))
        return False


def request_rebuild(kind: Kind, target: Target) -> None:
    """Request a build of a target's Bloom filter. Without the queue it is requested again later."""
    try:
        REBUILDS.send(BloomBuildStep(kind, target))
    except QueueDown as error:
        record("rebuild_postponed", **error_fields(error))


def hydrate(
    wanted: Sequence[tuple[Kind, Target]], wait_s: float | None = None
) -> list[tuple[Kind, Target]]:
    """Load targets from MySQL into Redis; returns those that are not loaded after ``wait_s``.

    One caller loads a target, the others wait for it, by default 0.5 s. Two round trips, and what
    ``mysql_reactions.read_snapshots`` costs. Raises RedisDown, MysqlDown.
    """
    deadline = Deadline.in_s(HYDRATE_WAIT_S if wait_s is None else wait_s)
    todo = list(wanted)
    while todo:
        leases = redis_hydration.take_hydration_leases(todo)
        taken = [
            (*w, lease) for w, lease in zip(todo, leases, strict=True) if lease.code == "TAKEN"
        ]
        left = [w for w, lease in zip(todo, leases, strict=True) if lease.code == "BUSY"]
        if taken:
            outboxes = redis_hydration.read_outboxes(
                [(k, t, lease.entries) for k, t, lease in taken]
            )
            snapshots = mysql_reactions.read_snapshots(
                [(k, t, actors) for (k, t, _), actors in zip(taken, outboxes, strict=True)],
                _depth(len(taken)),
            )
            codes = redis_hydration.hydrate_all(
                [(*of, snapshot) for of, snapshot in zip(taken, snapshots, strict=True)]
            )
            left += [
                (kind, target)
                for (kind, target, _), code in zip(taken, codes, strict=True)
                if code in ("STALE", "INCOMPLETE")
            ]
            _apply_ahead(
                [
                    Commit(kind, target, snapshot.db_version, snapshot.total, False, ())
                    for (kind, target, _), snapshot, code in zip(
                        taken, snapshots, codes, strict=True
                    )
                    if code == "MORE"
                ]
            )
        if not left or deadline.has_passed:
            return left
        if not taken:
            clock.sleep(_HYDRATE_POLL_S)
        todo = left
    return []


def _apply_ahead(commits: Sequence[Commit]) -> None:
    """Apply what arrived while targets were loaded; ``commits`` are without rows."""
    for commit, applied in zip(commits, redis_commits.apply_all(commits), strict=True):
        if applied.rebuild:
            request_rebuild(commit.kind, commit.target)


def _depth(targets_loaded: int) -> int:
    """How many of the newest actors are loaded of each target."""
    share = max(_MIN_ROWS_LOADED, _MAX_ROWS_LOADED // targets_loaded)
    return min(settings().recent_cap, share)


def tombstone(deleted: Sequence[Target]) -> None:
    """Let the gates of deleted targets refuse from now on. Two round trips. Raises RedisDown."""
    markers.mark_deleted(deleted)
    redis_hydration.tombstone_all(deleted)


def require_existing(target: Target) -> None:
    """Raises TargetMissing or TargetDeleted, and MysqlDown when only MySQL would know."""
    _require_live(target, lookup.find(*target))


def _decide(kind: Kind, target: Target, actor_id: int, on: bool) -> GateDecision:
    expected: tuple[bool, int] | None = None
    nonce = secrets.token_hex(6)
    for _ in range(_MAX_ATTEMPTS):
        decision = redis_gate.gate(kind, target, actor_id, on, nonce, expected)
        match decision.code:
            case "CHANGED" | "UNCHANGED":
                if not markers.is_cached_live(*target):
                    markers.cache_live(*target)
                return decision
            case "COLD":
                # A loaded target stays, so this process's memory of it is not enough.
                _require_live(target, lookup.find(*target, use_cache=False))
                hydrate([(kind, target)])
            case "UNKNOWN":
                if decision.rebuild:
                    request_rebuild(kind, target)
                expected = mysql_reactions.read_state(kind, target, actor_id)
            case "DELETED":
                _require_live(target, Existence.DELETED)
            case "FULL":
                raise OutboxFull(f"{target} has too many unsaved changes", retry_after_s=5)
            case "LIMITED":
                raise TooManyChanges(f"Too many changes of your {kind.name} of {target}", 60)
    raise ReactionUndecided(f"{target} changed during every attempt")


def _accept_provisionally(event: ReactionEvent, error: RedisDown) -> Outcome:
    """Redis is unavailable: queue the event without a version; MySQL decides by when it came."""
    target = event.key.target
    if not markers.is_cached_live(*target):
        _require_live(target, lookup.find_in_mysql(*target))
    REACTIONS.send(event)
    record("provisional_accepted", {"provisional": 1}, **error_fields(error))
    return Outcome(event.on, None, None)


def _require_live(target: Target, there: Existence) -> None:
    if there is Existence.MISSING:
        raise TargetMissing(f"There is no {target.type} {target.id}")
    if there is Existence.DELETED:
        raise TargetDeleted(f"The {target.type} {target.id} was deleted")
