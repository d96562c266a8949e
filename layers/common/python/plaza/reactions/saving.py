"""Saving: events from the queue into MySQL, then each commit into Redis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pymysql.cursors import Cursor

from plaza import counters
from plaza.counters import ContentCounter, UserCounter
from plaza.infra import clock, mysql
from plaza.infra.errors import Unavailable
from plaza.infra.observability import cause, record
from plaza.infra.redis import RedisDown
from plaza.reactions import mysql_reactions, redis_commits, redis_loads, redis_rankings
from plaza.reactions.queues import FOLLOWS, MAX_PAIRS, REACTIONS, SETTLEMENTS, Unacknowledged
from plaza.reactions.reacting import ask_rebuild, load
from plaza.reactions.reactions import (
    FOLLOW,
    KINDS,
    LIKE,
    Commit,
    Key,
    Kind,
    PostLikes,
    ReactionEvent,
    Row,
    Target,
    add_up,
    newest_rows,
    replay,
    transitions,
)
from plaza.reactions.redis_loads import MAX_ROWS
from plaza.targets import finding

__all__ = ["REACTIONS", "SETTLEMENTS", "Saved", "acknowledge", "resync", "save", "settle_again"]

_NEVER = Row(False, 0)


@dataclass(frozen=True, slots=True)
class Saved:
    """What MySQL has after a transaction: commits of targets, and totals of users.

    ``changed_us`` are the versions of the rows that it changed.
    """

    commits: Sequence[Commit]
    users: Mapping[int, UserCounter]
    changed_us: Sequence[int] = ()


@REACTIONS.consumer
def save(events: Sequence[ReactionEvent]) -> None:
    """Save a batch of events in one transaction, then acknowledge them in Redis.

    Nine statements at most; two more when a target has no counter yet.

    Safe to repeat. Commits that Redis does not take go onto a queue of their own: the batch is not
    saved again. Raises MysqlDown; QueueDown when Redis is unavailable too or a follow is in the
    batch, and then the batch comes again.
    """
    saved = mysql.atomically(lambda cursor: _write(cursor, events))
    record(
        "reactions_saved",
        {"accepted": len(events), "changed": len(saved.changed_us)},
        targets=len(saved.commits),
    )
    leads_ms = [e.sent_ms - e.ver_us / 1000 for e in events if e.ver_us and e.sent_ms]
    if leads_ms:
        record("queue_clock_measured", {"queue_clock_lead_min_ms": round(min(leads_ms), 1)})
    try:
        acknowledge(saved)
        _record_lag(saved.changed_us)
    except RedisDown as error:
        SETTLEMENTS.send(Unacknowledged(commits=saved.commits))
        record("settle_postponed", {"settles_postponed": len(saved.commits)}, **cause(error))
    _tell_of_follows(events)


def _record_lag(changed_us: Sequence[int]) -> None:
    """How long ago what a batch changed was accepted; Redis has just been told that it is saved."""
    if changed_us:
        now_us = clock.now_us()
        lags_s = [max(0.0, round((now_us - ver_us) / 1e6, 3)) for ver_us in sorted(changed_us)]
        metrics = {"settle_lag_max_s": lags_s[0], "settle_lag_p50_s": lags_s[len(lags_s) // 2]}
        record("reactions_settled", metrics)


def _tell_of_follows(events: Sequence[ReactionEvent]) -> None:
    """Send whose follows may have changed, also when this batch changed none: the consumer that
    saved them may have been killed before. Raises QueueDown; the batch comes again then."""
    pairs = sorted({(e.key.actor_id, e.key.target_id) for e in events if e.key.kind == FOLLOW.name})
    for start in range(0, len(pairs), MAX_PAIRS):
        FOLLOWS.send(pairs[start : start + MAX_PAIRS])


def acknowledge(saved: Saved) -> None:
    """Bring Redis to what MySQL has. Four round trips when all is in order. Raises RedisDown."""
    applied = redis_commits.apply_all(saved.commits)
    counters.project_users(saved.users)
    redis_rankings.project_likes(
        [
            PostLikes(c.target.id, c.total, c.n)
            for c in saved.commits
            if c.kind is LIKE and c.target.type == "post"
        ]
    )
    limited = [c for c in saved.commits if c.kind.given]
    # Last: until a follow is in the actor's total, its claim stands for it.
    counters.release((actor, str(c.target), ver) for c in limited for actor, ver, _ in c.rows)
    lost, cold = [], []
    for commit, (code, waiting, rebuild, s) in zip(saved.commits, applied, strict=True):
        if rebuild:
            ask_rebuild(commit.kind, commit.target)
        if code == "GAP":
            lost.append((commit.kind, commit.target, s))
        elif code == "COLD" and waiting:
            cold.append((commit.kind, commit.target))
    resync(lost, cold)


def resync(
    lost: Sequence[tuple[Kind, Target, int]], cold: Iterable[tuple[Kind, Target]] = ()
) -> None:
    """Drop targets that miss a commit if they are still at a version; load them and cold ones.

    What MySQL cannot answer now is loaded by the next reader or sweep. Raises RedisDown.
    """
    todo = list(cold)
    if lost:
        codes = redis_loads.drop_all(lost)
        dropped = [of[:2] for of, code in zip(lost, codes, strict=True) if code == "DROPPED"]
        record("targets_resynced", {"resynced": len(dropped)})
        todo += dropped
    try:
        if todo:
            load(todo, wait_s=0)
    except Unavailable as error:
        if isinstance(error, RedisDown):
            raise
        record("load_postponed", targets=len(todo), **cause(error))


@SETTLEMENTS.consumer
def settle_again(messages: Sequence[Unacknowledged]) -> None:
    """Apply commits that Redis did not take, and what MySQL has of some keys by now.

    Raises MysqlDown, RedisDown.
    """
    for message in messages:
        rows_of = [Key(*c.target, c.kind.name, row[0]) for c in message.commits for row in c.rows]
        if rows_of:
            users = mysql.atomically(lambda cursor, keys=rows_of: _read_users_of(cursor, keys))  # type: ignore[misc]
            acknowledge(Saved(message.commits, users))
    keys = sorted({key for message in messages for key in message.keys})
    for start in range(0, len(keys), MAX_ROWS):
        part = keys[start : start + MAX_ROWS]
        acknowledge(mysql.atomically(lambda cursor, part=part: _read(cursor, part)))  # type: ignore[misc]


def _write(cursor: Cursor, events: Sequence[ReactionEvent]) -> Saved:
    epoch = mysql_reactions.pass_log_gate(cursor)
    keys = {event.key for event in events}
    owners = finding.read_owners(cursor, _targets(keys))
    # From here to the commit no other transaction saves reactions to these targets.
    held = counters.lock_content(cursor, _targets(keys))
    before = mysql_reactions.read_rows(cursor, keys)
    entries = replay(before, events)
    rows = newest_rows(before, entries)
    turns = add_up(entries)
    # Also where changes cancel out: rows have changed, and what was read before is old.
    moves = dict.fromkeys((key[:3] for key in rows), 0) | transitions(turns)
    of_keys = {key: before.get(key, _NEVER) for key in keys} | rows
    commits, versions = _commits(epoch, held, turns, moves, of_keys)
    mysql_reactions.append_log(cursor, entries, versions)
    if rows:
        mysql_reactions.upsert_rows(cursor, rows)
    _move_counters(cursor, owners, turns, moves, commits)
    changed_us = [row.ver_us for row in rows.values()]
    return Saved(commits, _read_users(cursor, owners, keys), changed_us)


def _read(cursor: Cursor, keys: Collection[Key]) -> Saved:
    epoch = mysql_reactions.pass_log_gate(cursor)
    owners = finding.read_owners(cursor, _targets(keys))
    held = counters.lock_content(cursor, _targets(keys))
    rows = mysql_reactions.read_rows(cursor, keys)
    commits, _ = _commits(epoch, held, {}, {}, rows)
    return Saved(commits, _read_users(cursor, owners, keys))


def _read_users_of(cursor: Cursor, keys: Collection[Key]) -> dict[int, UserCounter]:
    return _read_users(cursor, finding.read_owners(cursor, _targets(keys)), keys)


def _read_users(
    cursor: Cursor, owners: Mapping[tuple[str, int], int], keys: Collection[Key]
) -> dict[int, UserCounter]:
    """The totals of all users that ``keys`` concern, changed or not: the consumer that saved them
    may have been killed before Redis was told."""
    actors = {key.actor_id for key in keys if KINDS[key.kind].given}
    return counters.read_users_in(cursor, sorted({*owners.values(), *actors}))


def _targets(keys: Collection[Key]) -> list[Target]:
    return [Target(*target) for target in sorted({key[:2] for key in keys})]


def _move_counters(
    cursor: Cursor,
    owners: Mapping[tuple[str, int], int],
    turns: Mapping[Key, int],
    moves: Mapping[tuple[str, int, str], int],
    commits: Iterable[Commit],
) -> None:
    """Add up what turned, in the counters of targets, of their owners and of the actors."""
    of_content: dict[tuple[str, int], dict[str, int]] = {}
    of_users: dict[tuple[int], dict[str, int]] = {}

    def move_user(user_id: int, column: str, by: int) -> None:
        totals = of_users.setdefault((user_id,), {})
        totals[column] = totals.get(column, 0) + by

    for (of, target_id, kind_name), by in moves.items():
        kind, target = KINDS[kind_name], (of, target_id)
        of_content.setdefault(target, {})[kind.total] = by
        if by and target in owners:
            move_user(owners[target], kind.received, by)
    for key, by in turns.items():
        if given := KINDS[key.kind].given:
            move_user(key.actor_id, given, by)
    raised: dict[tuple[tuple[str, int], str], int] = {}
    for commit in commits:
        counted = commit.target, commit.kind.total
        raised[counted] = raised.get(counted, 0) + commit.is_new
    counters.add_to_content(cursor, of_content, raised)
    counters.add_to_users(cursor, of_users)


def _commits(
    epoch: int,
    held: Mapping[tuple[str, int], ContentCounter],
    turns: Mapping[Key, int],
    moves: Mapping[tuple[str, int, str], int],
    rows: Mapping[Key, Row],
) -> tuple[list[Commit], dict[Key, int]]:
    """What becomes of ``rows``: per target and kind one commit for each 250, in the order of ``n``.

    Also the ``n`` of each key. A script applies a commit in one run, so its rows are bounded; the
    transaction is one.
    """
    by_target: dict[tuple[str, int, str], list[Key]] = {}
    for key in rows:
        by_target.setdefault(key[:3], []).append(key)
    commits, versions = [], {}
    for moved, keys in sorted(by_target.items()):
        target, kind, is_new = Target(*moved[:2]), KINDS[moved[2]], moved in moves
        counter = held[target]
        total, n = counter.totals[kind.total], epoch + counter.vers[kind.total]
        for start in range(0, len(keys), MAX_ROWS):
            n += is_new
            of_part = []
            for key in keys[start : start + MAX_ROWS]:
                on, ver_us = rows[key]
                total += turns.get(key, 0)
                versions[key] = n
                of_part.append((key.actor_id, ver_us, on))
            commits.append(Commit(kind, target, n, total, is_new, of_part))
    return commits, versions
