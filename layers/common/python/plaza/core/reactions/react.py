"""A reaction: decided by the gate, recorded in the outbox, sent to the queue."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from plaza.core.reactions import mysql_rows, redis_gate, redis_hydration
from plaza.core.reactions.hot_totals import drop_total
from plaza.core.reactions.hydration import hydrate, request_rebuild
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import (
    KindClosed,
    NotRepeated,
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
from plaza.core.reactions.queues import REACTIONS
from plaza.core.reactions.redis_gate import GateDecision
from plaza.core.targets import Existence, TargetHidden, external_targets, lookup, markers
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues.queue import QueueDown
from plaza.infra.queues.spill import spill
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import error_fields, record

# A provisional event is ordered at most this long after its send began: the difference of clocks
# that is allowed for. A refusal that SQS may contradict later takes twice as long, so that the
# event is older than all requests after it.
PROVISIONAL_ORDER_S = 1.0
_MAX_ATTEMPTS = 5


def react(
    kind: Kind,
    target: Target,
    actor_id: int,
    on: bool,
    *,
    only_repeat: bool = False,
    external_id: str | None = None,
    charge: Callable[[], None] = lambda: None,
) -> Outcome:
    """Turn the actor's reaction on or off. One round trip and one message for a loaded target.

    The outcome is exact when two stores have it: Redis, and the queue or MySQL. It is provisional
    while Redis is unavailable, and when neither the queue nor MySQL accepted it. A first reaction
    to a target of the app, whose ``external_id`` is given, may create it, after ``charge``.
    Raises KindClosed, NumberTaken, TargetMissing, TargetDeleted, TargetHidden, TooManyChanges;
    NotRepeated, with ``only_repeat`` and Redis; and, to try again, OutboxFull, ReactionUndecided,
    MysqlDown, QueueDown.
    """
    if on and kind.is_closed:
        raise KindClosed(f"{kind.name.capitalize()} takes no new reactions.")
    key = ReactionKey(*target, kind.name, actor_id)
    try:
        decision = _decide(
            kind,
            target,
            actor_id,
            on,
            only_repeat=only_repeat,
            external_id=external_id,
            charge=charge,
        )
    except RedisDown as error:
        return _accept_provisionally(ReactionEvent(key, on, None), error, external_id, charge)
    if decision.code == "CHANGED":
        drop_total(kind, target)
    if not publish(ReactionEvent(key, on, decision.version_us)):
        return Outcome(on, None, None)
    return Outcome(on, decision.total, decision.code == "CHANGED", decision.at)


def publish(event: ReactionEvent) -> bool:
    """Send an event to the queue, or spill it to MySQL while SQS is unavailable. False when neither
    accepted it: the sweeper sends it from the outbox."""
    if REACTIONS.try_send(event):
        return True
    try:
        spill(REACTIONS.name, REACTIONS.encode(event))
        return True
    except MysqlDown as error:
        record("spill_failed", {"spills_failed": 1}, **error_fields(error))
        return False


def require_existing(target: Target) -> None:
    """Raise TargetMissing or TargetDeleted; TooManyLookups or MysqlDown without a marker."""
    require_live(target, lookup.find(*target))


def _decide(
    kind: Kind,
    target: Target,
    actor_id: int,
    on: bool,
    *,
    only_repeat: bool,
    external_id: str | None,
    charge: Callable[[], None],
) -> GateDecision:
    expected: tuple[bool, int] | None = None
    nonce = secrets.token_hex(6)
    for _ in range(_MAX_ATTEMPTS):
        decision = redis_gate.gate(
            kind,
            target,
            actor_id,
            on,
            nonce,
            expected,
            only_repeat=only_repeat,
            external_id=external_id,
        )
        match decision.code:
            case "CHANGED" | "UNCHANGED":
                if not markers.is_cached_live(*target):
                    markers.cache_live(*target)
                return decision
            case "UNNAMED" if external_id is not None:
                existence = external_targets.find(target, external_id, charge if on else None)
                require_live(target, existence)
            case "COLD":
                # A loaded target stays in Redis, so a cached existence is not enough.
                require_live(target, lookup.find(*target, use_cache=False))
                hydrate([(kind, target)])
            case "UNKNOWN":
                if decision.rebuild:
                    request_rebuild(kind, target)
                expected = mysql_rows.read_state(kind, target, actor_id)
            case "DELETED":
                require_live(target, Existence.DELETED)
            case "HIDDEN":
                if lookup.find_hidden([target]):
                    raise TargetHidden(f"{_describe(target)} is hidden.")
                # Shown by a process that was killed before it marked it.
                redis_hydration.evict_all([(kind, target, None)])
            case "FULL":
                detail = f"{_describe(target)} has too many unsaved reactions; try again."
                raise OutboxFull(detail, retry_after_s=5)
            case "NEW":
                raise NotRepeated
            case "LIMITED":
                detail = f"Your {kind.name} of {target.type} {target.id} changed too often."
                raise TooManyChanges(detail, 60)
    raise ReactionUndecided(f"{_describe(target)} changed during every attempt; try again.")


def _accept_provisionally(
    event: ReactionEvent,
    error: RedisDown,
    external_id: str | None,
    charge: Callable[[], None],
) -> Outcome:
    """Queue the event without a version: it is ordered by its arrival on the queue, but not
    after its deadline. Raises QueueDown, after the deadline if SQS may still store the event."""
    target = event.key.target
    if external_id is not None:
        existence = external_targets.find(target, external_id, charge if event.on else None)
        require_live(target, existence)
    elif not markers.is_cached_live(*target):
        require_live(target, lookup.find_in_mysql(*target))
        _require_visible(event)
    answer_at = Deadline.in_s(2 * PROVISIONAL_ORDER_S)
    deadline_ms = clock.now_ms() + int(PROVISIONAL_ORDER_S * 1000)
    try:
        REACTIONS.send(replace(event, deadline_ms=deadline_ms))
    except QueueDown as refusal:
        if refusal.may_have_run:
            clock.sleep(answer_at.left_s)
        raise
    record("provisional_accepted", {"provisional": 1}, **error_fields(error))
    return Outcome(event.on, None, None)


def _require_visible(event: ReactionEvent) -> None:
    """Raise TargetHidden if the event is a new reaction of a stranger to a hidden text; MysqlDown.
    One statement."""
    target = event.key.target
    if not event.on:
        return
    visibility = lookup.find_hidden([target]).get(target)
    if visibility is not None and visibility.hidden_author_id != event.key.actor_id:
        raise TargetHidden(f"{_describe(target)} is hidden.")


def require_live(target: Target, existence: Existence) -> None:
    """Raise TargetMissing, TargetDeleted unless the target is live."""
    if existence is Existence.MISSING:
        raise TargetMissing(f"{_describe(target)} does not exist.")
    if existence is Existence.DELETED:
        raise TargetDeleted(f"{_describe(target)} was deleted.")


def _describe(target: Target) -> str:
    return f"{target.type.capitalize()} {target.id}"
