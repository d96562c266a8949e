"""The consumer of reactions: save events in MySQL, then apply each commit to Redis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from plaza import counters
from plaza.counters import ContentCounter
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor, MysqlDown
from plaza.infra.queues import save_rate
from plaza.infra.queues.spill import spill
from plaza.infra.redis import connections
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import error_fields, record
from plaza.reactions import (
    mysql_log,
    mysql_rows,
    notification_moves,
    redis_commits,
    redis_hydration,
    redis_rankings,
    sorted_lists,
    term_guard,
)
from plaza.reactions.hydration import hydrate, request_rebuild
from plaza.reactions.model import (
    FOLLOW,
    KINDS,
    LIKE,
    MAX_ROWS,
    Commit,
    CounterChange,
    EventGroups,
    Kind,
    PostLikes,
    ReactionEvent,
    ReactionKey,
    ReactionRow,
    Target,
    group_events,
    replay,
)
from plaza.reactions.notification_moves import NotificationDecision
from plaza.reactions.queues import ACKNOWLEDGEMENTS, FOLLOWS, MAX_PAIRS, REACTIONS, Unacknowledged
from plaza.reactions.redis_commits import ApplyResult
from plaza.reactions.term_guard import MasterDeposed, Masters
from plaza.switches import refresh as switches_refresh
from plaza.targets import lookup
from plaza.unread import moves
from plaza.unread import queries as unread_queries

if TYPE_CHECKING:
    from plaza.push import announce as push_announce
else:  # while the unread counter is off, nothing is pushed
    push_announce = LazyModule("plaza.push.announce")

__all__ = [
    "ACKNOWLEDGEMENTS",
    "REACTIONS",
    "PersistedBatch",
    "acknowledge",
    "acknowledge_again",
    "resync",
    "save",
    "save_history",
]

EVENTS_PER_TRANSACTION = 1000


class PersistedBatch(NamedTuple):
    """The result of a transaction: its commits, the users whose totals count the reactions, the
    follows (actor, target, version) whose holds end when these totals are in Redis, the versions
    of changed rows, whether the master that this process is connected to was deposed, so that it
    must not apply the commits, and the users whose unread counters may have moved."""

    commits: Sequence[Commit]
    users: Sequence[int]
    held: Sequence[tuple[int, str, int]] = ()
    changed_us: Sequence[int] = ()
    is_deposed: bool = False
    notified: Collection[int] = ()


class Stored(NamedTuple):
    """The first version of the epoch; owners, locked counters and rows of a batch, as MySQL has
    them; and whether the master was deposed (``PersistedBatch``)."""

    epoch: int
    owners: Mapping[tuple[str, int], int]
    counters: Mapping[tuple[str, int], ContentCounter]
    rows: Mapping[ReactionKey, ReactionRow]
    is_deposed: bool = False


class Decision(NamedTuple):
    """What a batch changes: rows, commits, rendered rows of the log, totals of content and
    users."""

    changes: Sequence[CounterChange]
    commits: Sequence[Commit]
    log: str
    of_content: Mapping[tuple[str, int], Mapping[str, int]]
    of_users: Mapping[tuple[int], Mapping[str, int]]

    @property
    def is_new(self) -> bool:
        """Return whether a row changes."""
        return any(change.is_new for change in self.changes)


class _Applied(NamedTuple):
    """The result of each commit in Redis, and the users of whom Redis has something."""

    results: Sequence[ApplyResult]
    cached: set[int]


@REACTIONS.consumer
def save(events: Sequence[ReactionEvent]) -> None:
    """Save a batch of events, 1,000 in a transaction, and acknowledge them in Redis.

    Each transaction is three packets (``_persist_batch``), and runs again when a target has no
    counter. Then one statement, and two calls at most, where pushes are on. While one runs, the
    commits of the one before are applied to Redis. Safe to repeat. Commits that Redis does not
    accept, or that are for another master than this process is connected to, are queued separately,
    so that the batch is not saved again. Raises MysqlDown; Busy as ``save_rate``; QueueDown when
    Redis is unavailable too: SQS delivers the batch again.
    """
    save_rate.wait_for_turn(len(events))
    masters = term_guard.read_masters()
    notifies = switches_refresh.read().notifications_on
    size = EVENTS_PER_TRANSACTION
    # Events of a target are in one transaction, which pays once for its counter and its commit.
    ordered = sorted(events, key=lambda event: event.key.target_id)
    parts = [ordered[start : start + size] for start in range(0, len(events), size)]
    store = partial(_store, masters=masters, notifies=notifies)
    if len(parts) > 1:
        _save_overlapped(parts, store)
    else:
        _acknowledge_or_postpone(store(events))
    _publish_follow_changes(events)


def _save_overlapped(
    parts: Sequence[Sequence[ReactionEvent]],
    store: Callable[[Sequence[ReactionEvent]], PersistedBatch],
) -> None:
    """Save each of ``parts`` in one transaction, while Redis applies the commits of the one before.

    The thread and this one never use Redis at the same time: it has one connection.
    """
    begun: tuple[PersistedBatch, Future[_Applied]] | None = None
    with ThreadPoolExecutor(max_workers=1) as thread:
        for part in parts:
            saved = store(part)
            if begun:
                _acknowledge_or_postpone(*begun)
            begun = saved, thread.submit(_apply, saved)
        if begun:
            _acknowledge_or_postpone(*begun)


def _store(
    events: Sequence[ReactionEvent], masters: Masters | None, *, notifies: bool
) -> PersistedBatch:
    """Save events in one transaction."""
    saved = counters.run_in_transaction(
        lambda cursor: _persist_batch(cursor, events, masters, notifies=notifies)
    )
    record(
        "reactions_saved",
        {"accepted": len(events), "changed": len(saved.changed_us)},
        targets=len(saved.commits),
    )
    if notifies:
        push_announce.announce_notified(saved.notified)
    leads_ms = [e.sent_ms - e.version_us / 1000 for e in events if e.version_us and e.sent_ms]
    if leads_ms:
        newest_us = max(e.version_us for e in events if e.version_us)
        record(
            "queue_clock_measured",
            {
                "queue_clock_lead_min_ms": round(min(leads_ms), 1),
                "version_lead_max_s": round(max(0.0, newest_us / 1e6 - clock.now_s()), 1),
            },
        )
    return saved


def _acknowledge_or_postpone(
    saved: PersistedBatch, applied: Future[_Applied] | None = None
) -> None:
    """Acknowledge a saved batch, or queue its commits if Redis or MySQL is unavailable."""
    try:
        if applied is None:
            acknowledge(saved)
        else:
            _complete(saved, applied.result())
        _record_lag(saved.changed_us)
    except (RedisDown, MysqlDown) as error:
        ACKNOWLEDGEMENTS.send(Unacknowledged(commits=saved.commits))
        record(
            "acknowledgement_postponed",
            {"acknowledgements_postponed": len(saved.commits)},
            **error_fields(error),
        )


def save_history(events: Sequence[ReactionEvent]) -> int:
    """Save a batch of old reactions from another system, with their times as versions; return how
    many rows changed. Costs as much as ``save``, notifies nobody, records no lag, and sends follows
    only, to the feeds.

    Safe to repeat. Raises MysqlDown; RedisDown or MysqlDown after the commit: repeat the batch, so
    that targets in Redis and feeds get it.
    """
    masters = term_guard.read_masters()
    saved = counters.run_in_transaction(
        lambda cursor: _persist_batch(cursor, events, masters, notifies=False)
    )
    acknowledge(saved)
    _publish_follow_changes(events)
    return len(saved.changed_us)


def _record_lag(changed_us: Sequence[int]) -> None:
    """Record the time from the gate to the acknowledgement of changed rows."""
    if changed_us:
        now_us, ordered = clock.now_us(), sorted(changed_us)
        oldest_s, median_s = (
            max(0.0, round((now_us - version_us) / 1e6, 3))
            for version_us in (ordered[0], ordered[len(ordered) // 2])
        )
        record(
            "reactions_acknowledged",
            {"acknowledge_lag_max_s": oldest_s, "acknowledge_lag_p50_s": median_s},
        )


def _publish_follow_changes(events: Sequence[ReactionEvent]) -> None:
    """Send all follows of the batch, changed or not: a consumer that saved them before may have
    been killed before it sent them. What SQS refuses is stored in MySQL for the sweeper. Raises
    MysqlDown then."""
    pairs = sorted({(e.key.actor_id, e.key.target_id) for e in events if e.key.kind == FOLLOW.name})
    for start in range(0, len(pairs), MAX_PAIRS):
        part = pairs[start : start + MAX_PAIRS]
        if not FOLLOWS.try_send(part):
            spill(FOLLOWS.name, FOLLOWS.encode(part))


def acknowledge(saved: PersistedBatch) -> None:
    """Apply what MySQL has saved to Redis. Three round trips; more after a gap, and two statements
    and three round trips for users whose totals, holds or unread counters Redis has. Raises
    RedisDown, MysqlDown."""
    _complete(saved, _apply(saved))


def _apply(saved: PersistedBatch) -> _Applied:
    """Apply commits to Redis, without MySQL. Raises RedisDown; MasterDeposed, and closes the
    client, if another node took over before they were saved."""
    if saved.is_deposed:
        connections.forget_client()
        raise MasterDeposed("This process is not connected to the current master of Redis")
    results = redis_commits.apply_all(saved.commits)
    cached = counters.find_cached_users(saved.users, unread_queries.unread_key)
    redis_rankings.project_likes(
        [
            PostLikes(c.target.id, c.total, c.db_version)
            for c in saved.commits
            if c.kind is LIKE and c.target.type == "post"
        ]
    )
    return _Applied(results, cached)


def _complete(saved: PersistedBatch, applied: _Applied) -> None:
    """Update what Redis has of users after commits were applied; load again the targets that missed
    a commit."""
    results, cached = applied
    if cached:
        counters.refresh_projections(sorted(cached))
        unread_queries.refresh_projections(sorted(cached.intersection(saved.notified)))
    # Last: a hold counts for its follow until the projected total includes it.
    counters.release(of_follow for of_follow in saved.held if of_follow[0] in cached)
    lost, cold = [], []
    for commit, (code, outbox_count, rebuild, version) in zip(saved.commits, results, strict=True):
        if rebuild:
            request_rebuild(commit.kind, commit.target)
        if code == "GAP":
            lost.append((commit.kind, commit.target, version))
        elif code == "DROPPED" or (code == "COLD" and outbox_count):
            cold.append((commit.kind, commit.target))
    resync(lost, cold)


def resync(
    lost: Sequence[tuple[Kind, Target, int]], cold: Iterable[tuple[Kind, Target]] = ()
) -> None:
    """Drop the ``lost`` targets that are still at their db_version; hydrate them and ``cold`` ones.
    Without MySQL the next reader or sweep hydrates them. Raises RedisDown."""
    todo = list(cold)
    if lost:
        codes = redis_hydration.evict_all(lost)
        dropped = [
            (kind, target)
            for (kind, target, _), code in zip(lost, codes, strict=True)
            if code == "EVICTED"
        ]
        record("targets_resynced", {"resynced": len(dropped)})
        todo += dropped
    try:
        if todo:
            hydrate(todo, wait_s=0)
    except Unavailable as error:
        if isinstance(error, RedisDown):
            raise
        record("hydration_postponed", targets=len(todo), **error_fields(error))


@ACKNOWLEDGEMENTS.consumer
def acknowledge_again(messages: Sequence[Unacknowledged]) -> None:
    """Apply commits that Redis did not accept, and the current rows of keys. Safe to repeat. Raises
    MysqlDown, RedisDown."""
    for message in messages:
        rows_of = [
            ReactionKey(*c.target, c.kind.name, row[0]) for c in message.commits for row in c.rows
        ]
        if rows_of:
            read = partial(_read_users, message.commits, rows_of, term_guard.read_masters())
            acknowledge(mysql.run_in_transaction(read))
    keys = sorted({key for message in messages for key in message.keys})
    for start in range(0, len(keys), MAX_ROWS):
        part, masters = keys[start : start + MAX_ROWS], term_guard.read_masters()
        read_current = partial(_read_current, keys=part, masters=masters)
        acknowledge(counters.run_in_transaction(read_current))


def _persist_batch(
    cursor: Cursor,
    events: Sequence[ReactionEvent],
    masters: Masters | None,
    *,
    notifies: bool = False,
) -> PersistedBatch:
    """Read, decide and write a batch in three packets, of which the last one ends with the commit.

    One packet more when a replica was promoted, one for the first notification of an owner, and two
    when a target becomes large. Locks the log, then the counters by key, then the unread counters
    by owner.
    """
    groups, keys = group_events(events), {event.key for event in events}
    rows = mysql_rows.render_rows(groups)
    stored = _read(cursor, keys, masters)
    decision = decide(stored, groups)
    asked = notification_moves.reads(
        stored.owners, stored.rows, decision.changes, notifies=notifies
    )
    around = moves.read(cursor, asked.values(), notifies=notifies)
    unread_counters = notification_moves.decide(asked, around, stored.rows, notifies=notifies)
    _write(cursor, rows, stored, decision, unread_counters)
    return _describe_batch(stored, keys, decision.commits)._replace(
        held=_find_held(groups),
        changed_us=[a.version_us for c in decision.changes for a in c.actors if a.is_newer],
    )


def _read(cursor: Cursor, keys: Collection[ReactionKey], masters: Masters | None) -> Stored:
    """Lock the log and the counters of the targets of ``keys``, and read owners and rows. From here
    to the commit no other transaction saves reactions to these targets. One packet, one more when
    a replica was promoted. Raises MissingCounters."""
    targets = _targets(keys)
    lock, owners, locked, rows = mysql.read_all(
        cursor,
        [
            mysql_log.SHARE_LOG_LOCK,
            lookup.select_owners(targets),
            counters.select_locked(targets),
            mysql_rows.select_keys(keys),
        ],
    )
    epoch, terms = mysql_log.lock_of(lock)
    return Stored(
        epoch,
        lookup.owners_of(targets, owners),
        counters.locked_of(targets, locked),
        mysql_rows.rows_of(rows),
        _is_deposed(cursor, terms, masters, keys),
    )


def decide(stored: Stored, groups: EventGroups) -> Decision:
    """Return what the events of ``groups`` change. Pure."""
    changes = replay(stored.rows, groups)
    commits = _commits(stored.epoch, stored.counters, changes)
    log = mysql_log.render_log(changes, commits)
    return Decision(changes, commits, log, *_sum_totals(stored.owners, changes))


def _write(
    cursor: Cursor,
    rows: Mapping[ReactionKey, str],
    stored: Stored,
    decision: Decision,
    unread_counters: NotificationDecision,
) -> None:
    """Queue all writes for the packet of the commit. Two packets more when a target becomes
    large."""
    if decision.is_new:
        mysql_rows.upsert_rows(cursor, rows, unread_counters.sequences)
    mysql_log.append_log(cursor, decision.log)
    sorted_lists.change_lists(cursor, stored.counters, stored.rows, decision.changes)
    counters.add_to_content(cursor, decision.of_content)
    for write in unread_counters.writes:
        mysql.send(cursor, write)
    counters.add_to_users(cursor, decision.of_users)
    sorted_lists.begin_list(cursor, stored.counters, decision.commits)


def _read_users(
    commits: Sequence[Commit],
    keys: Collection[ReactionKey],
    masters: Masters | None,
    cursor: Cursor,
) -> PersistedBatch:
    targets = _targets(keys)
    lock, owners = mysql.read_all(cursor, [mysql_log.SHARE_LOG_LOCK, lookup.select_owners(targets)])
    epoch, terms = mysql_log.lock_of(lock)
    is_deposed = _is_deposed(cursor, terms, masters, keys)
    stored = Stored(epoch, lookup.owners_of(targets, owners), {}, {}, is_deposed)
    return _describe_batch(stored, keys, commits)


def _read_current(
    cursor: Cursor, keys: Collection[ReactionKey], masters: Masters | None
) -> PersistedBatch:
    stored = _read(cursor, keys, masters)
    # An event of version 0 is newer than no row.
    nothing = [ReactionEvent(key, False, 0) for key in keys]
    unchanged = replay(stored.rows, group_events(nothing))
    return _describe_batch(stored, keys, _commits(stored.epoch, stored.counters, unchanged))


def _describe_batch(
    stored: Stored, keys: Collection[ReactionKey], commits: Sequence[Commit]
) -> PersistedBatch:
    """Describe a batch by its commits alone: the follows of rows that are off are not known."""
    held = [
        (actor_id, str(commit.target), version_us)
        for commit in commits
        if commit.kind.given
        for actor_id, version_us, on in commit.rows
        if on
    ]
    return PersistedBatch(
        commits,
        _users_of(stored.owners, keys),
        held,
        is_deposed=stored.is_deposed,
        notified=notification_moves.after(stored.owners, keys),
    )


def _find_held(groups: EventGroups) -> list[tuple[int, str, int]]:
    """Return the follows whose holds end. An unfollow ends no hold: the follow of this hold may
    be on its way to the gate."""
    return [
        (actor_id, str(Target(target_type, target_id)), version_us)
        for (target_type, target_id, kind), group in groups
        if KINDS[kind].given
        for (actor_id, version_us), event in group
        if event.on
    ]


def _is_deposed(
    cursor: Cursor,
    terms: Mapping[int, str],
    masters: Masters | None,
    keys: Collection[ReactionKey],
) -> bool:
    """Return whether a master of ``keys`` was deposed since ``masters`` were read. No statement;
    one for a slot whose master changed."""
    kinds = ((KINDS[key.kind], key.target) for key in keys)  # read after a promotion only
    return not term_guard.pass_guard(cursor, terms, masters, kinds)


def _users_of(owners: Mapping[tuple[str, int], int], keys: Collection[ReactionKey]) -> list[int]:
    """Return all owners and actors of ``keys``, changed or not: a consumer that saved them before
    may have been killed before it updated Redis."""
    return sorted({*owners.values(), *(key.actor_id for key in keys if KINDS[key.kind].given)})


def _targets(keys: Collection[ReactionKey]) -> list[Target]:
    return [Target(*target) for target in sorted({key[:2] for key in keys})]


def _sum_totals(
    owners: Mapping[tuple[str, int], int], changes: Iterable[CounterChange]
) -> tuple[dict[tuple[str, int], dict[str, int]], dict[tuple[int], dict[str, int]]]:
    """Add up changes of the counters of targets, and of their owners and the actors."""
    of_content: dict[tuple[str, int], dict[str, int]] = {}
    of_users: dict[tuple[int], dict[str, int]] = {}

    def add_to_user(user_id: int, column: str, delta: int) -> None:
        totals = of_users.setdefault((user_id,), {})
        totals[column] = totals.get(column, 0) + delta

    for change in changes:
        if not change.is_new:
            continue
        target, kind = change.target, change.kind
        totals = of_content.setdefault(target, {})
        totals[kind.total] = totals.get(kind.total, 0) + change.delta
        totals[kind.version] = totals.get(kind.version, 0) + 1
        if change.delta and target in owners:
            add_to_user(owners[target], kind.received, change.delta)
        if kind.given:
            for actor in change.actors:
                if actor.change:
                    add_to_user(actor.actor_id, kind.given, actor.change)
    return of_content, of_users


def _commits(
    epoch: int, locked: Mapping[tuple[str, int], ContentCounter], changes: Iterable[CounterChange]
) -> list[Commit]:
    """Return the commit of each of ``changes``, which are in the order of their keys."""
    commits: list[Commit] = []
    for change in changes:
        target, kind = change.target, change.kind
        if commits and (commits[-1].target, commits[-1].kind) == (target, kind):
            _, _, db_version, total, _, _ = commits[-1]
        else:
            counter = locked[target]
            total, db_version = counter.totals[kind.total], epoch + counter.versions[kind.total]
        rows = [(actor_id, version_us, on) for actor_id, version_us, on, _, _ in change.actors]
        commits.append(
            Commit(
                kind,
                target,
                db_version + change.is_new,
                total + change.delta,
                change.is_new,
                rows,
            )
        )
    return commits
