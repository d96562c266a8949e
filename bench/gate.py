"""The gate beside the classic five calls, over 50 connections; commits, over one."""

import csv
import io
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from bench.meters import redis_cpu_s, time_s
from cli.paths import CommandError
from local.stack.servers import require_binary
from plaza.core.reactions import (
    LIKE,
    Target,
    redis_bloom,
    redis_commits,
    redis_gate,
    redis_hydration,
    redis_keys,
)
from plaza.core.reactions.model import Commit, Snapshot
from plaza.infra.redis import masters, redis
from plaza.infra.redis.scripts import Script, load_script

FIVE_CALLS = load_script(Path(__file__).with_name("baselines") / "five_calls.lua")
CLIENTS = 50
RUNS = 3
CHANGES = 300_000
CAP = 1000
NEVER_REACHED = 10_000_000
TTL_MS = 864_000_000
ACTOR = "__rand_int__"  # redis-benchmark inserts a number of twelve digits here
ACTORS = 2_000_000_000  # about twenty actors repeat in a run
POST = Target("post", 7)
NEVER_US = 2**53  # deadline
ROWS = 100_000  # rows to apply
ROWS_OF_COMMIT = 250
COMMITS_AT_ONCE = 1_000
BASE_US = 1_700_000_000_000_000
_COMMANDS_AT_ONCE = 1_000


class Run(NamedTuple):
    """Calls a second, and CPU of Redis per call."""

    rate: float
    cpu_us: float


def measure(harness: Harness) -> list[Figure]:
    """Measure the gate on an ordinary and on a viral target, and commits to one and to many
    targets.

    All in turns; the best run of each counts.
    """
    changes, rows = harness.scale(CHANGES), harness.scale(ROWS)
    benches = (
        partial(_five_calls, harness, changes),
        partial(_ordinary, harness, changes),
        partial(_viral, harness, changes),
        partial(_apply_to_one, harness, rows),
        partial(_apply_to_many, harness, rows),
    )
    five_calls, ordinary, viral, single, many = race(benches, RUNS)
    peer, cpu = Peer("five-call script", five_calls.rate), Peer("five calls", five_calls.cpu_us)
    goal, goal_viral = Goal("at least", 0.75, "ratio"), Goal("at least", 0.5, "ratio")
    return [
        Figure("gate, ordinary target", ordinary.rate, "changes/s", peer, goal),
        Figure("gate, viral target", viral.rate, "changes/s", peer, goal_viral),
        Figure("  CPU of Redis, ordinary target", ordinary.cpu_us, "us", cpu),
        Figure("  CPU of Redis, viral target", viral.cpu_us, "us", cpu),
        Figure("apply, one hot target", single.rate, "rows/s"),
        Figure("  CPU of Redis", single.cpu_us, "us a row"),
        Figure("apply, 1,000 targets with one row each", many.rate, "rows/s"),
        Figure("  CPU of Redis", many.cpu_us, "us a row"),
    ]


def race(benches: Sequence[Callable[[], Run]], rounds: int) -> list[Run]:
    results = zip(*([bench() for bench in benches] for _ in range(rounds)), strict=True)
    return [Run(max(run.rate for run in runs), min(run.cpu_us for run in runs)) for runs in results]


def _five_calls(harness: Harness, calls: int) -> Run:
    harness.clear()
    keys = (f"like:{POST}:{ACTOR}", f"likes:{POST}")
    run = run_script(harness, calls, FIVE_CALLS, keys, (TTL_MS // 1000,))
    _check_count(int(redis.execute("GET", keys[1])), calls)
    return run


def _ordinary(harness: Harness, calls: int) -> Run:
    """Use a target without likes: recent is empty and complete."""
    harness.clear()
    _load([POST], Snapshot(0, 0, 0, [], is_complete=True, rows=[], loaded_us=1))
    return _gate(harness, calls)


def _viral(harness: Harness, calls: int) -> Run:
    """Use a target with a full recent and a bloom filter of the size that a build creates."""
    harness.clear()
    newest = [(actor, actor) for actor in range(CAP, 0, -1)]
    _load([POST], Snapshot(CAP, 1, CAP, newest, is_complete=False, rows=[], loaded_us=1))
    redis_bloom.begin_bloom(LIKE, POST, "bench", calls)
    redis_bloom.fill_bloom(LIKE, POST, "bench", [], last=True)
    return _gate(harness, calls)


def _gate(harness: Harness, calls: int) -> Run:
    keys = redis_keys.keys_of(LIKE.name, POST)
    term = masters.find_node(keys.meta).term
    run = run_script(
        harness,
        calls,
        redis_gate.GATE,
        redis_gate.gate_keys(keys),
        (ACTOR, 1, "bench", NEVER_US, term, NEVER_REACHED, keys.member, 0),
    )
    changed, entries, _ = map(int, redis.execute("HGET", keys.meta, "accepted").split(":"))
    stored = redis.execute("HLEN", keys.outbox)
    _check_count(changed, calls)
    if not entries == stored == changed:
        raise CommandError(
            f"{changed} changes, but {entries} counted and {stored} stored in the outbox"
        )
    return run


def _load(targets: Sequence[Target], snapshot: Snapshot) -> None:
    leases = redis_hydration.take_hydration_leases([(LIKE, target) for target in targets])
    codes = redis_hydration.hydrate_all(
        [(LIKE, target, lease, snapshot) for target, lease in zip(targets, leases, strict=True)]
    )
    if set(codes) != {"HYDRATED"}:
        raise CommandError(f"targets were not loaded: {set(codes)}")


def _apply_to_one(harness: Harness, rows: int) -> Run:
    """Apply commits of 250 rows each; every row acknowledges an outbox entry."""
    harness.clear()
    _load([POST], Snapshot(0, 0, 0, [], is_complete=True, rows=[], loaded_us=1))
    _fill_outbox([(POST, actor) for actor in range(1, rows + 1)])
    commits = [
        Commit(LIKE, POST, n, n * ROWS_OF_COMMIT, True, _rows(range(start, start + ROWS_OF_COMMIT)))
        for n, start in enumerate(range(1, rows + 1, ROWS_OF_COMMIT), 1)
    ]
    return _apply([[commit] for commit in commits], rows)


def _apply_to_many(harness: Harness, rows: int) -> Run:
    """Apply commits of one row each, to 1,000 targets at a time."""
    harness.clear()
    targets = [Target("post", number) for number in range(1, COMMITS_AT_ONCE + 1)]
    _load(targets, Snapshot(0, 0, 0, [], is_complete=True, rows=[], loaded_us=1))
    rounds = range(1, rows // COMMITS_AT_ONCE + 1)
    _fill_outbox([(target, actor) for actor in rounds for target in targets])
    batches = [
        [Commit(LIKE, target, actor, actor, True, _rows([actor])) for target in targets]
        for actor in rounds
    ]
    return _apply(batches, len(batches) * COMMITS_AT_ONCE)


def _rows(actors: Sequence[int]) -> list[tuple[int, int, bool]]:
    return [(actor, BASE_US + actor, True) for actor in actors]


def _fill_outbox(reactions: Sequence[tuple[Target, int]]) -> None:
    """Write outbox entries as the gate does: likes that are not saved."""
    commands: list[tuple[str | int, ...]] = []
    entries: dict[Target, int] = {}
    for target, actor in reactions:
        keys = redis_keys.keys_of(LIKE.name, target)
        commands.append(("HSET", keys.outbox, actor, f"1:{BASE_US + actor}:0:cbench"))
        entries[target] = entries.get(target, 0) + 1
    for target, count in entries.items():
        keys = redis_keys.keys_of(LIKE.name, target)
        commands.append(("HSET", keys.meta, "accepted", f"{count}:{count}:{BASE_US}"))
        commands.append(("ZADD", keys.outboxes, BASE_US, keys.member))
    for start in range(0, len(commands), _COMMANDS_AT_ONCE):
        redis.pipeline(commands[start : start + _COMMANDS_AT_ONCE])


def _apply(batches: Sequence[Sequence[Commit]], rows: int) -> Run:
    def apply_all() -> None:
        for batch in batches:
            codes = {applied.code for applied in redis_commits.apply_all(batch)}
            if not codes <= {"APPLIED", "DUPLICATE"}:  # DUPLICATE follows MORE
                raise CommandError(f"commits were not applied: {codes}")

    cpu_s = redis_cpu_s()
    took_s = time_s(apply_all)
    if left := redis.execute("KEYS", "*:outbox"):
        raise CommandError(f"{len(left)} outboxes have entries left")
    return Run(rows / took_s, (redis_cpu_s() - cpu_s) / rows * 1e6)


def run_script(
    harness: Harness,
    calls: int,
    script: Script,
    keys: tuple[str, ...],
    args: tuple[str | int, ...],
    *,
    random_below: int = ACTORS,
    clients: int = CLIENTS,
) -> Run:
    """Call ``script`` from many clients. Their C code takes little CPU.

    Inserted numbers are below ``random_below``.
    """
    redis.execute("SCRIPT", "LOAD", script.source)
    options = ["-p", harness.redis_port, "-c", clients, "-n", calls, "-r", random_below, "--csv"]
    command = ["EVALSHA", script.sha, len(keys), *keys, *args]
    cpu_s = redis_cpu_s()
    completed = subprocess.run(
        [str(part) for part in (require_binary("redis-benchmark"), *options, *command)],
        capture_output=True,
        text=True,
        check=True,
    )
    cpu_s = redis_cpu_s() - cpu_s
    row = next(csv.DictReader(io.StringIO(completed.stdout[completed.stdout.index('"test"') :])))
    return Run(float(row["rps"]), cpu_s / calls * 1e6)


def _check_count(counted: int, calls: int) -> None:
    if not calls * 0.999 <= counted <= calls:
        raise CommandError(f"of {calls} calls {counted} changed something: invalid run")
