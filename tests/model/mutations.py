"""Mutations of the protocol, each of which breaks one rule; the model must find them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from greenlet import getcurrent, greenlet

from plaza.core.reactions import (
    FOLLOW,
    Target,
    acknowledgement,
    at,
    failover_recovery,
    mysql_failover_progress,
    mysql_log,
    mysql_snapshots,
    persist,
    queries,
    react,
    redis_failover_progress,
    redis_gate,
    redis_hydration,
    redis_queries,
    term_guard,
)
from plaza.core.reactions.at import parse_order
from plaza.core.reactions.model import Outcome
from plaza.infra.mysql import mysql
from plaza.infra.redis import terms
from plaza.infra.runtime.clock import Deadline
from plaza.people.follows import FollowLimit, follow_user
from tests.model.masters import Masters
from tests.model.reactions_model import HOUR_US, rewrite


class Mutation(NamedTuple):
    """A replaced text of a script, and the troubles and stories that find it soonest.
    ``script`` is '' for a mutation of Python only, see ``_IN_PYTHON``."""

    script: str
    old: str
    new: str
    troubles: tuple[str, ...]


MUTATIONS: Mapping[str, Mutation] = {
    # UNCHANGED is no assertion: it is neither recorded nor published.
    "assertions": Mutation(
        "GATE",
        "  changed = was ~= want",
        "  changed = was ~= want"
        " if not changed then return {'UNCHANGED', now, total, 1, db_version, loaded, changes} end",
        ("away", "late", "queue"),
    ),
    "order": Mutation(
        "APPLY",
        "elseif db_version == meta.db_version + 1 then",
        "elseif db_version > meta.db_version then",
        ("none", "drops"),
    ),
    "deadline": Mutation(
        "GATE", "if now > tonumber(ARGV[4]) then", "if false then", ("late", "all")
    ),
    "nonce": Mutation("GATE", "if of_request == nonce then", "if false then", ("replies",)),
    "lease": Mutation(
        "HYDRATE",
        "if redis.call('GET', lease) ~= ARGV[2] then",
        "if false then",
        ("drops", "kills"),
    ),
    "fence": Mutation(
        "HYDRATE",
        "if tonumber(redis.call('GET', fence) or 0) > db_version then",
        "if false then",
        ("away", "all"),
    ),
    "base move": Mutation(
        "APPLY", "elseif is_new and base ~= states[i] then", "elseif false then", ("none", "drops")
    ),
    "filter's second write": Mutation(
        "APPLY",
        "if meta.filling > 0 then bloom_add_all(filling, meta.filling, actors) end",
        "",
        ("a build", "none", "drops"),
    ),
    "row_requests": Mutation(
        "GATE",
        "if not (at and ARGV[9] and tonumber(ARGV[10]) >= tonumber(at)) then",
        "if not ARGV[9] then",
        ("none", "drops"),
    ),
    "an applied row ends its row request": Mutation(
        "APPLY",
        "if not meta.complete and redis.call('EXISTS', row_requests) == 1 then",
        "if false then",
        ("none", "drops"),
    ),
    "term": Mutation("READ_META", "if m[1] ~= term then return nil end", "", ("rollback", "all")),
    "the seal of a filter": Mutation(
        "STATE", "if redis.call('GETBIT', bloom, filter) == 0 then", "if false then", ("drops",)
    ),
    "drop keeps the outbox": Mutation(
        "REBASE", "redis.call('HDEL', outbox, unpack(confirmed))", "", ("drops", "kills")
    ),
    "the rows of entries when loading": Mutation(
        "REBASE", "if base ~= state then", "if false then", ("drops", "kills")
    ),
    "the floor": Mutation("APPLY", "if meta.floor > 0 then", "if false then", ("away", "late")),
    "commits wait ahead": Mutation(
        "APPLY", "redis.call('HSET', ahead, db_version_text, total .. '|' .. text)", "", ("none",)
    ),
    "the fence of an announced read": Mutation(
        "STORE_READ",
        "if current[1] == fence and tonumber(current[2]) <= tonumber(version) then",
        "if tonumber(current[2] or 0) <= tonumber(version) then",
        ("a slow read", "drops", "flush"),
    ),
    "an actor leaves the first page": Mutation(
        "APPLY", "changed = changed or listed[actor] or", "changed = changed or", ("none", "queue")
    ),
    "an actor enters the first page": Mutation(
        "APPLY",
        "or states[i] ~= '0' and tonumber(versions[i]) <= last",
        "",
        ("a late row", "away", "late", "all"),
    ),
    "the version of the first page": Mutation(
        "CACHE_EARLIEST",
        "or tonumber(m[1]) > tonumber(ARGV[2])",
        "",
        ("a late row", "none", "queue"),
    ),
    "the deadline of a provisional event": Mutation("", "", "", ("late queue",)),
    "the late answer of a failed send": Mutation("", "", "", ("late queue",)),
    "a repeated follow passes the gate": Mutation("", "", "", ("a provisional unfollow", "all")),
    "a repeated follow makes no new one": Mutation(
        "GATE", "ARGV[8] == '1'", "false", ("a repeated follow",)
    ),
    "an unfollow ends no hold": Mutation("", "", "", ("a slow follow",)),
    "the isolation of a snapshot": Mutation("", "", "", ("a snapshot", "drops")),
    "a term's name": Mutation("", "", "", ("a term returns", "masters")),
    "the name is read again": Mutation("", "", "", ("an old connection", "masters")),
    "a replica has no name": Mutation("", "", "", ("an old connection", "masters")),
    "the term guard": Mutation("", "", "", ("two masters", "masters")),
    "the guard is stored before the log is read": Mutation("", "", "", ("two masters", "masters")),
    "a successor names its predecessor": Mutation("", "", "", ("a deposed consumer", "masters")),
    "who stores a term begins a recovery": Mutation("", "", "", ("an old sweeper", "masters")),
    "progress belongs to a mastership": Mutation("", "", "", ("a deposed sweeper", "masters")),
    "heads are stored at the checked master": Mutation(
        "RECORD_HEADS", "if ARGV[3] ~= ARGV[4] then", "if false then", ("a deposed sweeper",)
    ),
    "a slow run ends no later recovery": Mutation("", "", "", ("a slow sweeper",)),
    "a clock's maximum lead": Mutation("", "", "", ("clock ahead",)),
    "a sweep ends a wait of the future": Mutation(
        "SWEEP", "math.abs(now_us - blocked)", "(now_us - blocked)", ("a lost commit",)
    ),
    "a commit ends a wait of the future": Mutation(
        "APPLY", "math.abs(now - meta.blocked)", "(now - meta.blocked)", ("a lost commit",)
    ),
    "the index has times of acceptance": Mutation(
        "GATE", "version > now and now or version_text", "version_text", ("a row of the future",)
    ),
    "an entry of the future is due": Mutation(
        "SWEEP",
        "if resend_after_us <= 0 or is_ahead(accepted_us, now_us) then return true end",
        "if resend_after_us <= 0 then return true end",
        ("an entry of the future", "clock back"),
    ),
    "a commit of an old epoch confirms nothing": Mutation(
        "APPLY",
        "math.floor(db_version / EPOCH) == math.floor(meta.db_version / EPOCH)",
        "true",
        ("a restore", "restore"),
    ),
    "a change of the total raises its token": Mutation(
        "GATE", "string.format('%d', (changes or 0) + 1)", "changes or '0'", ("none",)
    ),
    "a repeat has the present token": Mutation(
        "GATE",
        "tonumber(entry_version), db_version, loaded, changes}",
        "tonumber(entry_version), db_version, loaded, '0'}",
        ("replies",),
    ),
    "the time of a load is MySQL's": Mutation(
        "HYDRATE",
        "'loaded', ARGV[9]",
        "'loaded', string.format('%d', time[1] * 1000000 + time[2])",
        ("clock back",),
    ),
    "the time of a load is read after its lease": Mutation("", "", "", ("a slow load",)),
    "a token begins with the version of the counter": Mutation("", "", "", ("away", "late")),
    "a token has the time of the load": Mutation("", "", "", ("rollback", "drops")),
    "a total of MySQL has no token": Mutation("", "", "", ("away", "drops")),
    "a total and its token are of one reply": Mutation("", "", "", ("none",)),
}


def _name_by_process(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Masters, "name", lambda self, server: f"process{server.database}")


def _read_the_name_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terms, "is_role_due", lambda name: False)


def _believe_a_replica(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Masters, "name", lambda self, server: server.term)
    patch.setattr(Masters, "may_write", lambda self, server: True)


def _pass_no_guard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(term_guard, "pass_guard", lambda *_: True)


def _store_terms_after_the_log_was_read(patch: pytest.MonkeyPatch) -> None:
    _store_terms_alone(patch)  # else a late store begins another recovery, which mends it
    store, acknowledge = (
        term_guard.store_terms,
        failover_recovery.acknowledge_after_failover,
    )
    late: dict[greenlet, Any] = {}

    def acknowledge_first() -> int:
        queued = acknowledge()
        if masters := late.pop(getcurrent(), None):
            store(masters)
        return queued

    patch.setattr(term_guard, "store_terms", lambda masters: late.update({getcurrent(): masters}))
    patch.setattr(failover_recovery, "acknowledge_after_failover", acknowledge_first)


def _store_terms_alone(patch: pytest.MonkeyPatch) -> None:
    """Leave the progress of the recovery as it is when terms are replaced."""

    def replace(terms: Mapping[int, str]) -> None:
        [(progress,)] = mysql.fetch_all("SELECT MAX(epoch) FROM redis_epoch")
        replaced(terms)
        mysql.write("UPDATE redis_epoch SET epoch = %s", (progress,))

    replaced = mysql_log.replace_terms
    patch.setattr(mysql_log, "replace_terms", replace)


def _read_no_heads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(redis_failover_progress, "read_heads", list)


def _end_any_recovery(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        mysql_failover_progress,
        "end_recovery",
        lambda _, terms: mysql.write("UPDATE redis_epoch SET epoch = %s", (terms,)),
    )


def _succeed_any_term(patch: pytest.MonkeyPatch) -> None:
    def pass_guard(cursor: Any, stored: Any, masters: Any, targets: Any) -> bool:
        if masters and stored:
            master = masters[next(iter(masters))]
            mysql_log.succeed_term(cursor, 0, stored[0], master.term)
        return masters is not None

    patch.setattr(term_guard, "pass_guard", pass_guard)


# Another script has a check of its own, or makes a decision in two places: script, old, new.
_ALSO = {
    "term": ("GATE", "if term ~= ARGV[5] then", "if false then"),
    "assertions": ("GATE", "local is_new = base and", "local is_new = changed and base and"),
}
# Scripts by the included text that a mutation replaces.
_INCLUDED_BY: Mapping[str, Sequence[str]] = {
    "": (),
    "READ_META": ("READ", "APPLY", "HYDRATE", "SWEEP", "BEGIN_BLOOM", "FIND_DENIED"),
    "STATE": ("READ", "GATE"),
}


def _publish_changes_only(patch: pytest.MonkeyPatch) -> None:
    publish = react.publish

    def publish_changed(event: Any) -> bool:
        return True if event.version_us == 1 else publish(event)

    patch.setattr(react, "publish", publish_changed)


def _send_without_deadline(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(react, "replace", lambda event, **_: event)


class _NoWait(Deadline):
    """A deadline that callers do not wait for."""

    left_s = 0.0


def _answer_failures_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(react, "Deadline", _NoWait)
    patch.setattr(react, "PROVISIONAL_ORDER_S", 0.05)


def _read_repeated_follows(patch: pytest.MonkeyPatch) -> None:
    def read(target: Target, actor_id: int) -> Outcome:
        [followers], _ = queries.read_counts([(FOLLOW, target)], actor_id)
        if not followers.viewer_state:
            raise FollowLimit("at the limit")
        return Outcome(True, followers.total, False)

    patch.setattr(follow_user, "_repeat_follow", read)


def _release_by_unfollows(patch: pytest.MonkeyPatch) -> None:
    persist_batch = persist._persist_batch

    def persist_and_release(*args: Any, **options: Any) -> acknowledgement.PersistedBatch:
        saved = persist_batch(*args, **options)
        rows = [
            (actor_id, str(commit.target), version_us)
            for commit in saved.commits
            for actor_id, version_us, _ in commit.rows
        ]
        return saved._replace(held=rows)

    patch.setattr(persist, "_persist_batch", persist_and_release)


def _read_snapshots_committed(patch: pytest.MonkeyPatch) -> None:
    source = inspect.getsource(mysql.run_in_snapshot)
    line = 'send(cursor, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")'
    assert line in source, "run_in_snapshot sets no isolation level"
    defined: dict[str, Any] = {}
    exec(source.replace(line, "pass"), vars(mysql), defined)
    patch.setattr(mysql, "run_in_snapshot", defined["run_in_snapshot"])


def _follow_any_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terms, "MAX_CLOCK_LEAD_US", 2 * HOUR_US)


def _encode_tokens(patch: pytest.MonkeyPatch, encode: Callable[..., str | None]) -> None:
    for module in (at, redis_gate, redis_queries):
        patch.setattr(module, "parse_order", encode)


def _leave_out_the_version(patch: pytest.MonkeyPatch) -> None:
    _encode_tokens(patch, lambda _, loaded, changes: parse_order(0, loaded, changes))


def _leave_out_the_load(patch: pytest.MonkeyPatch) -> None:
    _encode_tokens(patch, lambda db_version, _, changes: parse_order(db_version, "1", changes))


def _read_the_clock_before_the_lease(patch: pytest.MonkeyPatch) -> None:
    take, hydrate_all = redis_hydration.take_hydration_leases, redis_hydration.hydrate_all
    early: dict[greenlet, int] = {}

    def take_late(pairs: Any) -> Any:
        [snapshot] = mysql_snapshots.read_snapshots([(*pairs[0], ())], 1)
        early[getcurrent()] = snapshot.loaded_us
        return take(pairs)

    def hydrate_early(loads: Any) -> list[str]:
        loaded_us = early[getcurrent()]
        return hydrate_all([(*load[:3], load[3]._replace(loaded_us=loaded_us)) for load in loads])

    patch.setattr(redis_hydration, "take_hydration_leases", take_late)
    patch.setattr(redis_hydration, "hydrate_all", hydrate_early)


def _give_totals_of_mysql_a_token(patch: pytest.MonkeyPatch) -> None:
    read = mysql_snapshots.read_counters
    read_counts = queries._read_counts

    def read_with_token(pairs: Any, *args: Any, **options: Any) -> Any:
        counts, exact = read_counts(pairs, *args, **options)
        if not exact:
            versions = [parse_order(version, "0", "0") for _, version in read(pairs)]
            counts = [c._replace(at=of) for c, of in zip(counts, versions, strict=True)]
        return counts, exact

    patch.setattr(queries, "_read_counts", read_with_token)


def _read_totals_and_tokens_apart(patch: pytest.MonkeyPatch) -> None:
    read = redis_queries.read_all

    def read_twice(*args: Any) -> Any:
        return [
            first and second and first._replace(at=second.at)
            for first, second in zip(read(*args), read(*args), strict=True)
        ]

    patch.setattr(redis_queries, "read_all", read_twice)


_IN_PYTHON: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "assertions": _publish_changes_only,
    "the deadline of a provisional event": _send_without_deadline,
    "the late answer of a failed send": _answer_failures_at_once,
    "a repeated follow passes the gate": _read_repeated_follows,
    "an unfollow ends no hold": _release_by_unfollows,
    "the isolation of a snapshot": _read_snapshots_committed,
    "a term's name": _name_by_process,
    "the name is read again": _read_the_name_once,
    "a replica has no name": _believe_a_replica,
    "the term guard": _pass_no_guard,
    "the guard is stored before the log is read": _store_terms_after_the_log_was_read,
    "a successor names its predecessor": _succeed_any_term,
    "who stores a term begins a recovery": _store_terms_alone,
    "progress belongs to a mastership": _read_no_heads,
    "a slow run ends no later recovery": _end_any_recovery,
    "a clock's maximum lead": _follow_any_clock,
    "the time of a load is read after its lease": _read_the_clock_before_the_lease,
    "a token begins with the version of the counter": _leave_out_the_version,
    "a token has the time of the load": _leave_out_the_load,
    "a total of MySQL has no token": _give_totals_of_mysql_a_token,
    "a total and its token are of one reply": _read_totals_and_tokens_apart,
}


def mutate(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a function that applies a mutation with a patch."""
    mutation = MUTATIONS[name]

    def apply(patch: pytest.MonkeyPatch) -> None:
        if name in _IN_PYTHON:
            _IN_PYTHON[name](patch)
        for script in _INCLUDED_BY.get(mutation.script, (mutation.script,)):
            rewrite(patch, script, mutation.old, mutation.new)
        if name in _ALSO:
            rewrite(patch, *_ALSO[name])

    return apply
