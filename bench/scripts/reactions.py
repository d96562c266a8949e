"""Reactions: a target with a full recent, two bloom filters and an outbox, and full calls."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count, islice

from bench.harness import Harness
from bench.scripts.cases import Case, prepare_nothing
from cli.paths import CommandError
from plaza.core.reactions import (
    KINDS,
    Target,
    redis_bloom,
    redis_commits,
    redis_failover_progress,
    redis_gate,
    redis_hydration,
    redis_inspection,
    redis_outbox,
    redis_queries,
    redis_user_lists,
)
from plaza.core.reactions.cached_comparison import MAX_NEWEST
from plaza.core.reactions.comparisons import ACTORS_PER_CALL
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import MAX_ROWS, Commit, ReactedTarget, Reactor, Snapshot
from plaza.core.reactions.queries import EARLIEST_LENGTH
from plaza.core.reactions.rebuild import PAGE
from plaza.core.reactions.redis_commits import MAX_AHEAD, ROWS_OF_TARGET
from plaza.core.reactions.redis_hydration import HydrationLease
from plaza.core.reactions.redis_keys import keys_of
from plaza.core.reactions.sweep import EVENTS_PER_TARGET
from plaza.core.targets import Visibility
from plaza.infra.redis import masters, redis
from plaza.infra.redis.shards import shard_of

LIKE: Kind = KINDS["like"]
MANY = 1_000_000  # reactions of the target
OUTBOX = 100_000
TOGGLERS = 10_000
TARGETS = 10  # one for each run of a case
PAGE_OF_READERS = 102
_FIRST_ACTOR = 10**18  # ids with all their digits
_VERSION_US = 1_700_000_000_000_000
_S = 7
_FULL = 1_000  # actors of a full recent, by default

Row = tuple[int, int, bool]


def _target(run: int) -> Target:
    return Target("post", 1 + run)


def _actors(first: int, count: int) -> range:
    return range(_FIRST_ACTOR + first, _FIRST_ACTOR + first + count)


def _snapshot(newest: Iterable[tuple[int, int]] = (), rows: Iterable[Row] = ()) -> Snapshot:
    return Snapshot(MANY, _S, _VERSION_US, list(newest), False, list(rows), _VERSION_US)


def _full_recent() -> list[tuple[int, int]]:
    return [(actor, _VERSION_US) for actor in _actors(0, _FULL)]


def _lease(run: int) -> HydrationLease:
    [lease] = redis_hydration.take_hydration_leases([(LIKE, _target(run))])
    return lease


def _load(run: int, snapshot: Snapshot) -> None:
    [code] = redis_hydration.hydrate_all([(LIKE, _target(run), _lease(run), snapshot)])
    if code != "HYDRATED":
        raise CommandError(f"a target was not loaded: {code}")


def _load_without_filters(harness: Harness) -> None:
    for run in range(TARGETS):
        _load(run, _snapshot(_full_recent()))


def _load_full(harness: Harness) -> None:
    for run in range(TARGETS):
        _load(run, _snapshot(_full_recent()))
        _keep_earliest(run)
        for build in ("in use", "next"):
            redis_bloom.begin_bloom(LIKE, _target(run), build, MANY)
            if build == "in use":
                redis_bloom.fill_bloom(LIKE, _target(run), build, _actors(0, 1), last=True)


def _keep_earliest(run: int) -> None:
    actors = _actors(10 * MANY, EARLIEST_LENGTH)
    earliest = [Reactor(actor, _VERSION_US - 10**9 + actor % MANY) for actor in actors]
    if not redis_queries.cache_earliest(LIKE, _target(run), _S, earliest):
        raise CommandError("the earliest actors were not cached")


def _put_outbox(run: int, actors: Iterable[int], version_us: int, base: int) -> None:
    entries = {str(actor): f"1:{version_us}:{base}:c{actor % 2**48:012x}" for actor in actors}
    keys = keys_of(LIKE.name, _target(run))
    parts = [part for entry in entries.items() for part in entry]
    for start in range(0, len(parts), 10_000):
        redis.execute("HSET", keys.outbox, *parts[start : start + 10_000])
    redis.execute("ZADD", keys.outboxes, version_us, keys.member)
    if redis.execute("EXISTS", keys.meta):
        accepted = f"{len(entries)}:{len(entries)}:{version_us}"
        redis.execute("HSET", keys.meta, "accepted", accepted)


def _request_rows(run: int, actors: Iterable[int]) -> None:
    keys = keys_of(LIKE.name, _target(run))
    redis.execute("HSET", keys.row_requests, *(part for actor in actors for part in (actor, _S)))


def _rows(first: int, count: int, on: bool = True) -> list[Row]:
    return [(actor, _VERSION_US + 1, on) for actor in _actors(first, count)]


def _load_before_commit(newer_us: int) -> Callable[[Harness], None]:
    """Give each actor of the next commit an outbox entry and a request for its row."""

    def prepare(harness: Harness) -> None:
        _load_full(harness)
        for run in range(TARGETS):
            actors = _actors(_FULL, MAX_ROWS)
            _put_outbox(run, actors, _VERSION_US + newer_us, 0)
            _request_rows(run, actors)

    return prepare


def _apply(run: int, rows: list[Row], n: int = _S + 1, is_new: bool = True) -> None:
    """Run the script once, where ``apply_all`` would repeat it after MORE."""
    commit = Commit(LIKE, _target(run), n, MANY, is_new, rows)
    call = redis_commits.apply_call([commit], int(time.time() * 1000) + 86_400_000)
    redis.run(call.script, call.keys, call.args)


def _neighbours(run: int) -> list[Target]:
    """Return the targets of one shard that one run takes with a row each."""
    shard = shard_of(str(_target(run)))
    of_shard = (Target("post", n) for n in count(1) if shard_of(f"post:{n}") == shard)
    return list(islice(of_shard, MAX_ROWS // (ROWS_OF_TARGET + 1)))


def _load_neighbours(harness: Harness) -> None:
    pairs = [(LIKE, target) for run in range(TARGETS) for target in _neighbours(run)]
    leases = redis_hydration.take_hydration_leases(pairs)
    snapshot = _snapshot(_full_recent())
    redis_hydration.hydrate_all(
        [(*of, lease, snapshot) for of, lease in zip(pairs, leases, strict=True)]
    )


def _apply_to_neighbours(run: int) -> None:
    rows = _rows(_FULL, 1)
    commits = [Commit(LIKE, target, _S + 1, MANY, True, rows) for target in _neighbours(run)]
    call = redis_commits.apply_call(commits, int(time.time() * 1000) + 86_400_000)
    redis.run(call.script, call.keys, call.args)


def _load_and_buffer(harness: Harness) -> None:
    """Buffer the commit after the next one, of the largest size."""
    _load_before_commit(0)(harness)
    for run in range(TARGETS):
        _apply(run, _rows(2 * _FULL, MAX_ROWS), _S + 2)


def _buffer_many(harness: Harness) -> None:
    """Buffer the maximum number of commits, all but the next one."""
    _load_full(harness)
    for run in range(TARGETS):
        for i in range(MAX_AHEAD):
            few = MAX_ROWS // MAX_AHEAD
            _apply(run, _rows(_FULL + i * few, few), _S + 2 + i)


def _exceed(harness: Harness) -> None:
    """Apply a commit without evicting the actors above the cap of recent."""
    _load_full(harness)
    for run in range(TARGETS):
        _apply(run, _rows(_FULL, MAX_ROWS))


_leases: list[HydrationLease] = []


def _lease_all(harness: Harness) -> None:
    _leases[:] = [_lease(run) for run in range(TARGETS)]


def _put_ahead(harness: Harness) -> None:
    """Buffer the maximum number of commits, each of the largest size."""
    text = redis_hydration.render_rows(_rows(_FULL, MAX_ROWS))
    for run in range(TARGETS):
        commits = [part for i in range(MAX_AHEAD) for part in (_S + 1 + i, f"{MANY}|{text}")]
        redis.execute("HSET", keys_of(LIKE.name, _target(run)).ahead, *commits)
    _lease_all(harness)


def _hydrate(run: int) -> None:
    load = (LIKE, _target(run), _leases[run], _snapshot(_full_recent()))
    if redis_hydration.hydrate_all([load]) != ["MORE"]:
        raise CommandError("a target was not loaded")


def _lease_with_outbox(harness: Harness) -> None:
    for run in range(TARGETS):
        _put_outbox(run, _actors(0, MAX_ROWS), _VERSION_US + 5, 0)
    _lease_all(harness)


def _rebase(run: int) -> None:
    rows = _rows(0, MAX_ROWS)
    call = redis_hydration._rebase_call(LIKE, _target(run), _leases[run], 1, rows)
    redis.run(call.script, call.keys, call.args)


def _load_with_outbox(harness: Harness) -> None:
    _load_full(harness)
    _put_outbox(0, _actors(0, harness.scale(OUTBOX)), _VERSION_US, 0)


def _load_with_togglers(harness: Harness) -> None:
    _load_with_outbox(harness)
    now_us = time.time_ns() // 1000
    togglers = [part for a in _actors(0, TOGGLERS) for part in (a, now_us)]
    redis.execute("HSET", keys_of(LIKE.name, _target(0)).toggles, *togglers)


def _gate(first: int, on: bool) -> Callable[[int], object]:
    return lambda run: redis_gate.gate(
        LIKE, _target(0), _FIRST_ACTOR + first + run, on, f"{run:012x}", None
    )


def _fill_list(run: int) -> None:
    newest = [
        ReactedTarget(_target(i), _VERSION_US + i) for i in range(redis_user_lists.LIST_LENGTH)
    ]
    lease = redis_user_lists.take_lease(LIKE, _FIRST_ACTOR)
    redis_user_lists.fill_list(LIKE, _FIRST_ACTOR, lease, newest, _VERSION_US)


def _fill_filters(harness: Harness) -> None:
    """Fill the filter in use with all actors that are read."""
    _load_full(harness)
    redis_bloom.fill_bloom(LIKE, _target(0), "next", _actors(_FULL, PAGE), last=True)


def _fill_bloom(run: int, *, last: bool) -> None:
    redis_bloom.fill_bloom(LIKE, _target(run), "next", _actors(_FULL, PAGE), last=last)


CASES = [
    Case("a new actor", redis_gate.GATE, _load_with_outbox, _gate(10**9, on=True)),
    Case("the toggles are full", redis_gate.GATE, _load_with_togglers, _gate(0, on=False)),
    Case(
        "an actor in the filter",
        redis_queries.READ,
        _fill_filters,
        lambda run: redis_queries.read_all([(LIKE, _target(0))], _FIRST_ACTOR + _FULL),
    ),
    Case(
        "all versions are equal",
        redis_queries.PAGE,
        lambda harness: _load(0, _snapshot(_full_recent())._replace(is_complete=True)),
        lambda run: redis_queries.read_page(LIKE, _target(0), None, True, PAGE_OF_READERS),
    ),
    Case(
        "as many as a page has",
        redis_queries.CACHE_EARLIEST,
        _load_full,
        _keep_earliest,
    ),
    Case(
        "a large outbox", redis_hydration.LEASE_HYDRATION, _load_with_outbox, lambda run: _lease(0)
    ),
    Case(
        "250 rows that are older than the outbox",
        redis_hydration.REBASE,
        _lease_with_outbox,
        _rebase,
    ),
    Case("a full recent, 100 commits ahead", redis_hydration.HYDRATE, _put_ahead, _hydrate),
    *(
        Case(name, redis_commits.APPLY, _load_before_commit(newer_us), partial(_apply, **options))
        for name, newer_us, options in (
            ("250 rows that acknowledge the outbox", 0, {"rows": _rows(_FULL, MAX_ROWS)}),
            ("250 rows that are older than the outbox", 5, {"rows": _rows(_FULL, MAX_ROWS)}),
            ("250 rows that are off", 0, {"rows": _rows(0, MAX_ROWS, on=False)}),
            (
                "250 rows of a commit that was applied",
                0,
                {"rows": _rows(_FULL, MAX_ROWS), "n": _S, "is_new": False},
            ),
        )
    ),
    Case(
        "a large commit behind another",
        redis_commits.APPLY,
        _load_and_buffer,
        lambda run: _apply(run, _rows(_FULL, MAX_ROWS - 1)),
    ),
    Case(
        "27 targets of a shard with a row each",
        redis_commits.APPLY,
        _load_neighbours,
        _apply_to_neighbours,
    ),
    Case(
        "100 commits ahead",
        redis_commits.APPLY,
        _buffer_many,
        lambda run: _apply(run, _rows(2 * _FULL, 1)),
    ),
    Case(
        "no rows, 250 actors above the cap",
        redis_commits.APPLY,
        _exceed,
        lambda run: _apply(run, [], is_new=False),
    ),
    Case(
        "a full target",
        redis_hydration.EVICT,
        _load_full,
        lambda run: redis_hydration.evict_all([(LIKE, _target(run), None)]),
    ),
    Case(
        "a post that is loaded",
        redis_hydration.SET_VISIBILITY,
        _load_full,
        lambda run: redis_hydration.set_visibility_all([(_target(run), Visibility(run + 1, 7))]),
    ),
    Case(
        "a post that is loaded",
        redis_hydration.TOMBSTONE,
        _load_full,
        lambda run: redis_hydration.tombstone_all([_target(run)]),
    ),
    Case(
        "a large outbox",
        redis_outbox.SWEEP,
        _load_with_outbox,
        lambda run: redis_outbox.sweep_all(
            [(LIKE, _target(0))], 0, EVENTS_PER_TARGET, 3_600_000_000
        ),
    ),
    Case(
        "a filter of a million actors",
        redis_bloom.BEGIN_BLOOM,
        _load_without_filters,
        lambda run: redis_bloom.begin_bloom(LIKE, _target(run), "next", MANY),
    ),
    *(
        Case(name, redis_bloom.FILL_BLOOM, _load_full, partial(_fill_bloom, last=last))
        for name, last in (("a page", False), ("the last page", True))
    ),
    Case("a full list", redis_user_lists.FILL_LIST, prepare_nothing, _fill_list),
    Case(
        "a full recent",
        redis_inspection.INSPECT_TARGET,
        _load_full,
        lambda run: redis_inspection.inspect_all([(LIKE, _target(0))], MAX_NEWEST),
    ),
    Case(
        "a full recent and actors in the filter",
        redis_inspection.FIND_DENIED,
        _fill_filters,
        lambda run: redis_inspection.find_denied(
            [(LIKE, _target(0), _actors(_FULL, ACTORS_PER_CALL))]
        ),
    ),
    Case(
        "the heads of a shard",
        redis_failover_progress.RECORD_HEADS,
        prepare_nothing,
        lambda run: redis_failover_progress.record_heads(masters.read_masters(), run, run + 1),
    ),
]
