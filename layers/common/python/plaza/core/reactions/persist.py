"""The consumer of reactions: save events in MySQL, then apply each commit to Redis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from plaza.core import counters
from plaza.core.counters import CounterDelta, CounterKey, TargetCounter
from plaza.core.reactions import (
    acknowledgement,
    mysql_log,
    mysql_rows,
    sorted_lists,
    term_guard,
)
from plaza.core.reactions.acknowledgement import Applied, PersistedBatch, acknowledge
from plaza.core.reactions.kinds import FOLLOW, KINDS
from plaza.core.reactions.model import (
    MAX_ROWS,
    Commit,
    CounterChange,
    EventGroups,
    ReactionEvent,
    ReactionKey,
    ReactionRow,
    Target,
    group_events,
    replay,
)
from plaza.core.reactions.queues import (
    ACKNOWLEDGEMENTS,
    FOLLOWS,
    MAX_PAIRS,
    REACTIONS,
    Unacknowledged,
)
from plaza.core.reactions.term_guard import Masters
from plaza.core.switches import refresh as switches_refresh
from plaza.core.targets import lookup
from plaza.infra.contexts import list_offers
from plaza.infra.mysql import mysql, participants
from plaza.infra.mysql.mysql import Cursor, MysqlDown
from plaza.infra.mysql.participants import Changes, GroupKey, Move
from plaza.infra.queues import announcements, save_rate
from plaza.infra.queues.spill import spill
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import error_fields, record

__all__ = ["ACKNOWLEDGEMENTS", "REACTIONS", "acknowledge_again", "save", "save_history"]

EVENTS_PER_TRANSACTION = 1000
Key = tuple[str, int, str, int]
"""A ReactionKey: a plain tuple is made in a tenth of the time."""


class Stored(NamedTuple):
    """The first version of the epoch; owners, locked counters and rows of a batch, as MySQL has
    them; and whether the master was deposed (``PersistedBatch``)."""

    epoch: int
    owners: Mapping[tuple[str, int], int]
    counters: Mapping[CounterKey, TargetCounter]
    rows: Mapping[ReactionKey, ReactionRow]
    is_deposed: bool = False


class Decision(NamedTuple):
    """What a batch changes: rows, commits, rendered rows of the log, totals of targets and
    users."""

    changes: Sequence[CounterChange]
    commits: Sequence[Commit]
    log: str
    of_targets: Mapping[CounterKey, CounterDelta]
    of_users: Mapping[tuple[int], Mapping[str, int]]

    @property
    def is_new(self) -> bool:
        """Return whether a row changes."""
        return any(change.is_new for change in self.changes)


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
    notifies = not switches_refresh.read().notifications_stopped
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
    begun: tuple[PersistedBatch, Future[Applied]] | None = None
    with ThreadPoolExecutor(max_workers=1) as thread:
        for part in parts:
            saved = store(part)
            if begun:
                _acknowledge_or_postpone(*begun)
            begun = saved, thread.submit(acknowledgement.apply, saved)
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
        announcements.announce_notified(saved.notified)
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


def _acknowledge_or_postpone(saved: PersistedBatch, applied: Future[Applied] | None = None) -> None:
    """Acknowledge a saved batch, or queue its commits if Redis or MySQL is unavailable."""
    try:
        if applied is None:
            acknowledge(saved)
        else:
            acknowledgement.complete(saved, applied.result())
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
    many rows changed. Costs as much as ``save``, notifies no user, records no lag, and sends
    follows only, to the feeds.

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
    been killed before it sent them. None without a context that consumes them. What SQS refuses is
    stored in MySQL for the sweeper. Raises MysqlDown then."""
    if not any(list_offers("follows")):
        return
    pairs = sorted({(e.key.actor_id, e.key.target_id) for e in events if e.key.kind == FOLLOW.name})
    for start in range(0, len(pairs), MAX_PAIRS):
        part = pairs[start : start + MAX_PAIRS]
        if not FOLLOWS.try_send(part):
            spill(FOLLOWS.name, FOLLOWS.encode(part))


@ACKNOWLEDGEMENTS.consumer
def acknowledge_again(messages: Sequence[Unacknowledged]) -> None:
    """Apply commits that Redis did not accept, and the current rows of keys. Safe to repeat. Raises
    MysqlDown, RedisDown."""
    batches: list[tuple[Sequence[ReactionKey], Sequence[Commit] | None]] = [
        ([ReactionKey(*c.target, c.kind.name, row[0]) for c in of for row in c.rows], of)
        for of in (message.commits for message in messages)
    ]
    keys = sorted({key for message in messages for key in message.keys})
    batches += [(keys[start : start + MAX_ROWS], None) for start in range(0, len(keys), MAX_ROWS)]
    for part, commits in batches:
        if part:
            masters = term_guard.read_masters()
            read = partial(_read_current, keys=part, masters=masters, commits=commits)
            acknowledge(counters.run_in_transaction(read))


def _persist_batch(
    cursor: Cursor,
    events: Sequence[ReactionEvent],
    masters: Masters | None,
    *,
    notifies: bool = False,
) -> PersistedBatch:
    """Read, decide and write a batch in three packets, of which the last one ends with the commit.

    One packet more when a replica was promoted, one where the participant lacks rows, and two when
    a target becomes large. Locks the log, then the counters by key, then what the participant has
    of owners.
    """
    groups, keys = group_events(events), {event.key for event in events}
    rows = mysql_rows.render_rows(groups)
    stored = _read(cursor, keys, masters)
    decision = decide(stored, groups)
    moves = find_moves(stored, decision.changes)
    changes = Changes(moves.values(), notifies=notifies)
    # Before the owners are locked, who have more targets than these.
    _write_targets(cursor, stored, decision)
    shared = participants.decide(changes, participants.read(cursor, changes))
    _write_rows(cursor, rows, stored, decision, shared, moves)
    return _describe_batch(stored, keys, decision.commits)._replace(
        held=_find_held(groups),
        changed_us=[a.version_us for c in decision.changes for a in c.actors if a.is_newer],
    )


def _read(cursor: Cursor, keys: Collection[ReactionKey], masters: Masters | None) -> Stored:
    """Lock the log and the counters of the targets of ``keys``, and read owners and rows. From here
    to the commit no other transaction saves reactions to these targets. One packet, one more when
    a replica was promoted. Raises MissingCounters."""
    targets = _targets(keys)
    counted = sorted({key[:3] for key in keys})
    locking = counters.select_locked(counted), mysql_rows.select_keys(keys)
    stored, (locked, rows) = _read_owners(cursor, targets, keys, masters, *locking)
    return stored._replace(
        counters=counters.locked_of(counted, locked), rows=mysql_rows.rows_of(rows)
    )


def _read_owners(
    cursor: Cursor,
    targets: Sequence[Target],
    keys: Collection[ReactionKey],
    masters: Masters | None,
    *selects: str,
) -> tuple[Stored, list[Sequence[mysql.Row]]]:
    """Lock the log, and read the owners of ``targets``; return the rows of ``selects``, too. One
    packet, one more when a replica was promoted."""
    first = [mysql_log.SHARE_LOG_LOCK, lookup.select_owners(targets)]
    lock, owners, *rows = mysql.read_all(cursor, [*first, *selects])
    epoch, terms = mysql_log.lock_of(lock)
    kinds = ((KINDS[key.kind], key.target) for key in keys)  # read after a promotion only
    is_deposed = not term_guard.pass_guard(cursor, terms, masters, kinds)
    return Stored(epoch, lookup.owners_of(targets, owners), {}, {}, is_deposed), rows


def decide(stored: Stored, groups: EventGroups) -> Decision:
    """Return what the events of ``groups`` change. Pure."""
    changes = replay(stored.rows, groups)
    commits = _commits(stored.epoch, stored.counters, changes)
    log = mysql_log.render_log(changes, commits)
    return Decision(changes, commits, log, *_sum_totals(stored.owners, changes))


def find_moves(stored: Stored, changes: Iterable[CounterChange]) -> dict[Key, Move]:
    """Return the rows that ``changes`` turn on or off, of the kinds that notify and of targets with
    an owner, for the participant. Pure."""
    sequences, moves = _sequences_of(stored.rows), dict[Key, Move]()
    for change in changes:
        target, kind = change.target, change.kind
        owner = stored.owners.get(target)
        if owner is None or not kind.notifies:
            continue
        group = GroupKey(owner, kind.name, *target)
        for actor_id, _, on, moved, _ in change.actors:
            if moved:
                key = (*target, kind.name, actor_id)
                moves[key] = Move(group, actor_id, on, sequences.get(key, 0))
    return moves


def sequences_after(
    stored: Stored, moves: Iterable[Key], moved_to: Sequence[int] | None
) -> Mapping[Key, int] | None:
    """Return key -> notified_sequence of the rows that have one, of which ``moves`` get
    ``moved_to``; None: all stay. Pure."""
    if moved_to is None:
        return None
    return _sequences_of(stored.rows) | dict(zip(moves, moved_to, strict=True))


def _sequences_of(rows: Mapping[ReactionKey, ReactionRow]) -> dict[Key, int]:
    return {key: row.notified_sequence for key, row in rows.items()}


def _write_targets(cursor: Cursor, stored: Stored, decision: Decision) -> None:
    """Queue the writes that wait for no owner, for the next packet."""
    mysql_log.append_log(cursor, decision.log)
    sorted_lists.change_lists(cursor, stored.counters, stored.rows, decision.changes)
    counters.add_to_targets(cursor, decision.of_targets)


def _write_rows(
    cursor: Cursor,
    rows: Mapping[ReactionKey, str],
    stored: Stored,
    decision: Decision,
    shared: participants.Writes,
    moves: Iterable[Key],
) -> None:
    """Queue the other writes for the packet of the commit. Two packets more when a target becomes
    large."""
    if decision.is_new:
        sequences = sequences_after(stored, moves, shared.sequences)
        mysql_rows.upsert_rows(cursor, rows, sequences)
    participants.write(cursor, shared)
    counters.add_to_users(cursor, decision.of_users)
    sorted_lists.begin_list(cursor, stored.counters, decision.commits)


def _read_current(
    cursor: Cursor,
    keys: Collection[ReactionKey],
    masters: Masters | None,
    commits: Sequence[Commit] | None = None,
) -> PersistedBatch:
    """Describe ``commits`` that were not applied; without them the current rows of ``keys``, whose
    counters are locked. One packet."""
    if commits is not None:
        stored, _ = _read_owners(cursor, _targets(keys), keys, masters)
        return _describe_batch(stored, keys, commits)
    stored = _read(cursor, keys, masters)
    # An event of version 0 is newer than no row.
    unchanged = replay(stored.rows, group_events(ReactionEvent(key, False, 0) for key in keys))
    return _describe_batch(stored, keys, _commits(stored.epoch, stored.counters, unchanged))


def _describe_batch(
    stored: Stored, keys: Collection[ReactionKey], commits: Sequence[Commit]
) -> PersistedBatch:
    """Describe a batch by its commits alone: the follows of rows that are off are not known.

    Users are all owners and actors of ``keys``, changed or not: a consumer that saved them before
    may have been killed before it updated Redis.
    """
    actors = {key.actor_id for key in keys if KINDS[key.kind].given}
    held = [
        (actor_id, str(commit.target), version_us)
        for commit in commits
        if commit.kind.given
        for actor_id, version_us, on in commit.rows
        if on
    ]
    users = sorted(actors.union(stored.owners.values()))
    notified = find_notified(stored.owners, keys)
    return PersistedBatch(commits, users, held, is_deposed=stored.is_deposed, notified=notified)


def find_notified(
    owners: Mapping[tuple[str, int], int], keys: Iterable[ReactionKey]
) -> Collection[int]:
    """Return the owners whom reactions with ``keys`` may have notified, now or in a transaction of
    a consumer that was killed before it refreshed them."""
    return {owners[key[:2]] for key in keys if KINDS[key.kind].notifies and key[:2] in owners}


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


def _targets(keys: Collection[ReactionKey]) -> list[Target]:
    return [Target(*target) for target in sorted({key[:2] for key in keys})]


def _sum_totals(
    owners: Mapping[tuple[str, int], int], changes: Iterable[CounterChange]
) -> tuple[Mapping[CounterKey, CounterDelta], Mapping[tuple[int], Mapping[str, int]]]:
    """Add up changes of the counters of targets, and of their owners and the actors."""
    of_targets: dict[CounterKey, CounterDelta] = {}
    of_users: dict[tuple[int], defaultdict[str, int]] = {}
    for change in changes:
        if change.is_new:
            target, kind = change.target, change.kind
            key = (*target, kind.name)
            total, version, is_ranked = of_targets.get(key, (0, 0, target.type in kind.ranked))
            of_targets[key] = CounterDelta(total + change.delta, version + 1, is_ranked)
            if change.delta and kind.received and target in owners:
                of_user = of_users.setdefault((owners[target],), defaultdict(int))
                of_user[kind.received] += change.delta
            if kind.given:
                for actor in change.actors:
                    if actor.change:
                        of_user = of_users.setdefault((actor.actor_id,), defaultdict(int))
                        of_user[kind.given] += actor.change
    return of_targets, of_users


def _commits(
    epoch: int, locked: Mapping[CounterKey, TargetCounter], changes: Iterable[CounterChange]
) -> list[Commit]:
    """Return the commit of each of ``changes``, which are in the order of their keys."""
    commits: list[Commit] = []
    for change in changes:
        target, kind, is_new = change.target, change.kind, change.is_new
        if commits and (commits[-1].target, commits[-1].kind) == (target, kind):
            _, _, db_version, total, _, _ = commits[-1]
        else:
            counter = locked[(*target, kind.name)]
            total, db_version = counter.total, epoch + counter.version
        rows = [actor[:3] for actor in change.actors]
        db_version, total = db_version + is_new, total + change.delta
        commits.append(Commit(kind, target, db_version, total, is_new, rows))
    return commits
