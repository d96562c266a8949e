"""A reaction: decided by the gate, recorded in the outbox, sent to the queue."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues.queue import QueueDown
from plaza.infra.queues.spill import spill
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import error_fields, record
from plaza.reactions import mysql_reactions, redis_commits, redis_gate, redis_hydration
from plaza.reactions.hot_totals import drop_total
from plaza.reactions.model import (
    CONTENT_TYPES,
    MAX_UNSORTED,
    Commit,
    Kind,
    NotRepeated,
    OutboxFull,
    Outcome,
    ReactionEvent,
    ReactionKey,
    ReactionUndecided,
    Size,
    Target,
    TargetDeleted,
    TargetMissing,
    TooManyChanges,
)
from plaza.reactions.queues import REACTIONS, REBUILDS, BloomBuildStep
from plaza.reactions.redis_gate import GateDecision
from plaza.reactions.redis_hydration import HydrationLease
from plaza.reactions.settings import reaction_settings
from plaza.targets import Existence, TargetHidden, Visibility, lookup, markers

_Leased = tuple[Kind, Target, HydrationLease]

HYDRATE_WAIT_S = 0.5  # maximum wait for another caller that loads the target
_HYDRATE_POLL_S = 0.02
# A provisional event is ordered at most this long after its send began: the difference of clocks
# that is allowed for. A refusal that SQS may contradict later takes twice as long, so that the
# event is older than all requests after it.
PROVISIONAL_ORDER_S = 1.0
_MAX_ATTEMPTS = 5
_MAX_ROWS_LOADED = 10_000
_MIN_ROWS_LOADED = 50
_MAX_UNSIZED = 10  # targets that are read without their sizes, by one statement
# What the targets that one page loads may cost, and what each of them costs besides its rows.
_MAX_COST_OF_PAGE = 6_000
_COST_OF_TARGET = 20


def react(
    kind: Kind, target: Target, actor_id: int, on: bool, *, only_repeat: bool = False
) -> Outcome:
    """Turn the actor's reaction on or off. One round trip and one message for a loaded target.

    The outcome is exact when two stores have it: Redis, and the queue or MySQL. It is provisional
    while Redis is unavailable, and when neither the queue nor MySQL accepted it. Raises
    TargetMissing, TargetDeleted, TargetHidden, TooManyChanges; NotRepeated, with ``only_repeat``
    and Redis; and, to try again, OutboxFull, ReactionUndecided, MysqlDown, QueueDown.
    """
    key = ReactionKey(*target, kind.name, actor_id)
    try:
        decision = _decide(kind, target, actor_id, on, only_repeat=only_repeat)
    except RedisDown as error:
        return _accept_provisionally(ReactionEvent(key, on, None), error)
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


def request_rebuild(kind: Kind, target: Target) -> None:
    """Queue a build of a target's Bloom filter. If SQS refuses, the gate requests it again."""
    REBUILDS.try_send(BloomBuildStep(kind, target))


def hydrate(
    pairs: Sequence[tuple[Kind, Target]], wait_s: float | None = None
) -> list[tuple[Kind, Target]]:
    """Load targets from MySQL into Redis; return those that are not loaded after ``wait_s``.

    One caller loads a target, the others wait, by default for 0.5 s. Two round trips, more with
    outboxes and hidden texts; the statements of ``mysql_reactions.read_snapshots``, one for texts,
    and one for the sizes of more than ten targets. Raises RedisDown, MysqlDown.
    """
    busy, _ = _hydrate(pairs, wait_s, None)
    return busy


def hydrate_page(
    pairs: Sequence[tuple[Kind, Target]],
) -> tuple[list[tuple[Kind, Target]], set[tuple[Kind, Target]]]:
    """Load as many targets as a page may cost, at least one, as ``hydrate``; return those that are
    not loaded after 0.5 s, and those that are left to later pages and that MySQL has all of: while
    no caller could load them, their outboxes were empty. One round trip more to leave some."""
    return _hydrate(pairs, None, _MAX_COST_OF_PAGE)


def _hydrate(
    pairs: Sequence[tuple[Kind, Target]], wait_s: float | None, max_cost: int | None
) -> tuple[list[tuple[Kind, Target]], set[tuple[Kind, Target]]]:
    deadline = Deadline.in_s(HYDRATE_WAIT_S if wait_s is None else wait_s)
    todo, saved = list(dict.fromkeys(pairs)), set[tuple[Kind, Target]]()
    while todo:
        leases = redis_hydration.take_hydration_leases(todo)
        taken = [
            (*w, lease) for w, lease in zip(todo, leases, strict=True) if lease.code == "TAKEN"
        ]
        todo = [w for w, lease in zip(todo, leases, strict=True) if lease.code == "BUSY"]
        if taken:
            sizes: dict[tuple[Kind, Target], Size] = {}
            depth = _depth(len(taken))
            if len(taken) > _MAX_UNSIZED:
                sizes = mysql_reactions.read_sizes([(kind, target) for kind, target, _ in taken])
            if max_cost is not None:
                taken, beyond, max_cost = _choose(taken, sizes, depth, max_cost)
                saved |= {(kind, target) for kind, target, lease in beyond if not lease.entries}
            todo += _load(taken, sizes, depth)
        if not todo or deadline.has_passed:
            break
        if not taken:
            clock.sleep(_HYDRATE_POLL_S)
    return todo, saved


def _choose(
    taken: Sequence[_Leased], sizes: Mapping[tuple[Kind, Target], Size], depth: int, max_cost: int
) -> tuple[list[_Leased], list[_Leased], int]:
    """Return the targets to load, first targets of which MySQL lacks reactions; the targets whose
    leases were released; and what is left of ``max_cost``."""
    chosen: list[_Leased] = []
    beyond: list[_Leased] = []
    for leased in sorted(taken, key=lambda leased: leased[2].entries == 0):
        size = sizes.get(leased[:2], Size(0, False))
        rows = min(
            max(0, size.total), depth if size.is_sorted or size.total < depth else MAX_UNSORTED
        )
        cost = _COST_OF_TARGET + rows + leased[2].entries
        if cost <= max_cost or (not chosen and max_cost == _MAX_COST_OF_PAGE):
            chosen.append(leased)
            max_cost -= cost
        else:
            beyond.append(leased)
    if beyond:
        redis_hydration.release_hydration_leases(beyond)
    return chosen, beyond, max_cost


def _load(
    taken: Sequence[_Leased], sizes: Mapping[tuple[Kind, Target], Size], depth: int
) -> list[tuple[Kind, Target]]:
    """Load leased targets; return those whose snapshot was refused."""
    if not taken:
        return []
    outboxes = redis_hydration.read_outboxes([(k, t, lease.entries) for k, t, lease in taken])
    snapshots = mysql_reactions.read_snapshots(
        [(k, t, actors) for (k, t, _), actors in zip(taken, outboxes, strict=True)], depth, sizes
    )
    codes = redis_hydration.hydrate_all(
        [(*leased, snapshot) for leased, snapshot in zip(taken, snapshots, strict=True)]
    )
    _mark_hidden(target for _, target, _ in taken)
    _apply_ahead(
        [
            Commit(kind, target, snapshot.db_version, snapshot.total, False, ())
            for (kind, target, _), snapshot, code in zip(taken, snapshots, codes, strict=True)
            if code == "MORE"
        ]
    )
    return [
        (kind, target)
        for (kind, target, _), code in zip(taken, codes, strict=True)
        if code in ("STALE", "INCOMPLETE")
    ]


def _mark_hidden(loaded: Iterable[Target]) -> None:
    """Mark those targets that a moderator hid. After they were loaded: a text that is hidden later
    is marked by the process that hides it."""
    texts = {target for target in loaded if target.type in CONTENT_TYPES}
    if texts and (hidden := lookup.find_hidden(texts)):
        set_visibility({Target(*target): visibility for target, visibility in hidden.items()})


def _apply_ahead(commits: Sequence[Commit]) -> None:
    """Apply commits that arrived while targets were loaded; ``commits`` have no rows."""
    for commit, applied in zip(commits, redis_commits.apply_all(commits), strict=True):
        if applied.rebuild:
            request_rebuild(commit.kind, commit.target)


def _depth(targets_loaded: int) -> int:
    """Return how many of the newest actors of each target are loaded."""
    share = max(_MIN_ROWS_LOADED, _MAX_ROWS_LOADED // targets_loaded)
    return min(reaction_settings().recent_cap, share)


def tombstone(deleted: Sequence[Target]) -> None:
    """Mark deleted targets, so that their gates refuse. Two round trips. Raises RedisDown."""
    markers.mark_deleted(deleted)
    redis_hydration.tombstone_all(deleted)


def set_visibility(texts: Mapping[Target, Visibility]) -> None:
    """Make the gates of loaded targets refuse new reactions to hidden texts, and take those to
    visible ones. One round trip. Raises RedisDown."""
    redis_hydration.set_visibility_all(texts.items())


def require_existing(target: Target) -> None:
    """Raise TargetMissing or TargetDeleted; TooManyLookups or MysqlDown without a marker."""
    _require_live(target, lookup.find(*target))


def _decide(
    kind: Kind, target: Target, actor_id: int, on: bool, *, only_repeat: bool
) -> GateDecision:
    expected: tuple[bool, int] | None = None
    nonce = secrets.token_hex(6)
    for _ in range(_MAX_ATTEMPTS):
        decision = redis_gate.gate(
            kind, target, actor_id, on, nonce, expected, only_repeat=only_repeat
        )
        match decision.code:
            case "CHANGED" | "UNCHANGED":
                if not markers.is_cached_live(*target):
                    markers.cache_live(*target)
                return decision
            case "COLD":
                # A loaded target stays in Redis, so a cached existence is not enough.
                _require_live(target, lookup.find(*target, use_cache=False))
                hydrate([(kind, target)])
            case "UNKNOWN":
                if decision.rebuild:
                    request_rebuild(kind, target)
                expected = mysql_reactions.read_state(kind, target, actor_id)
            case "DELETED":
                _require_live(target, Existence.DELETED)
            case "HIDDEN":
                if lookup.find_hidden([target]):
                    raise TargetHidden(f"{_describe(target)} is hidden.")
                # Shown by a process that did not mark it: killed, or of the version before.
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


def _accept_provisionally(event: ReactionEvent, error: RedisDown) -> Outcome:
    """Queue the event without a version: it is ordered by its arrival on the queue, but not
    after its deadline. Raises QueueDown, after the deadline if SQS may still store the event."""
    target = event.key.target
    if not markers.is_cached_live(*target):
        _require_live(target, lookup.find_in_mysql(*target))
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
    if not event.on or target.type not in CONTENT_TYPES:
        return
    visibility = lookup.find_hidden([target]).get(target)
    if visibility is not None and visibility.hidden_author_id != event.key.actor_id:
        raise TargetHidden(f"{_describe(target)} is hidden.")


def _require_live(target: Target, existence: Existence) -> None:
    if existence is Existence.MISSING:
        raise TargetMissing(f"{_describe(target)} does not exist.")
    if existence is Existence.DELETED:
        raise TargetDeleted(f"{_describe(target)} was deleted.")


def _describe(target: Target) -> str:
    return f"{target.type.capitalize()} {target.id}"
