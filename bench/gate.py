"""The gate beside the classic five calls: changes a second over 50 connections."""

from __future__ import annotations

import csv
import io
import subprocess
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure, Goal, Peer
from bench.stage import Stage
from local.paths import LocalError
from local.servers import need_binary
from plaza.infra import redis
from plaza.infra.lua import Script, load_script
from plaza.reactions import LIKE, Target, redis_reactions
from plaza.reactions.mysql_reactions import Snapshot

FIVE_CALLS = load_script(Path(__file__).with_name("baselines") / "five_calls.lua")
CLIENTS = 50
RUNS = 3
CHANGES = 300_000
CAP = 1000
NEVER_REACHED = 10_000_000
TTL_MS = 864_000_000
ACTOR = "__rand_int__"  # redis-benchmark puts a number of twelve digits here
ACTORS = 2_000_000_000  # of so many: about twenty come twice in a run
POST = Target("post", 7)


class Run(NamedTuple):
    """Calls a second, and CPU of Redis per call."""

    rate: float
    cpu_us: float


def measure(stage: Stage) -> list[Figure]:
    """On an ordinary and on a viral target. The three take turns; the best run of each counts."""
    changes = stage.some(CHANGES)
    five_calls, ordinary, viral = (
        Run(max(run.rate for run in runs), min(run.cpu_us for run in runs))
        for runs in zip(
            *(
                (_five_calls(stage, changes), _ordinary(stage, changes), _viral(stage, changes))
                for _ in range(RUNS)
            ),
            strict=True,
        )
    )
    peer, cpu = Peer("five-call script", five_calls.rate), Peer("five calls", five_calls.cpu_us)
    least, least_viral = Goal("at least", 0.6, "ratio"), Goal("at least", 0.35, "ratio")
    return [
        Figure("gate, ordinary target", ordinary.rate, "changes/s", peer, least),
        Figure("gate, viral target", viral.rate, "changes/s", peer, least_viral),
        Figure("  CPU of Redis, ordinary target", ordinary.cpu_us, "us", cpu),
        Figure("  CPU of Redis, viral target", viral.cpu_us, "us", cpu),
    ]


def _five_calls(stage: Stage, calls: int) -> Run:
    stage.clear()
    keys = (f"like:{POST}:{ACTOR}", f"likes:{POST}")
    run = run_script(stage, calls, FIVE_CALLS, keys, (TTL_MS // 1000,))
    _check_count(int(redis.execute("GET", keys[1])), calls)
    return run


def _ordinary(stage: Stage, calls: int) -> Run:
    """Nobody liked it yet, and everybody who does stays in recent."""
    stage.clear()
    redis_reactions.hydrate_all([(LIKE, POST, Snapshot(0, 0, 0, [], complete=True))])
    return _gate(stage, calls, NEVER_REACHED, before=0)


def _viral(stage: Stage, calls: int) -> Run:
    """Recent is full, and the Bloom filter is as large as a rebuild leaves it."""
    stage.clear()
    newest = [(actor, actor) for actor in range(CAP, 0, -1)]
    redis_reactions.hydrate_all([(LIKE, POST, Snapshot(CAP, 1, CAP, newest, complete=False))])
    redis_reactions.begin_bloom(LIKE, POST, "bench", calls)
    redis_reactions.fill_bloom(LIKE, POST, "bench", [], last=True)
    return _gate(stage, calls, CAP, before=CAP)


def _gate(stage: Stage, calls: int, cap: int, before: int) -> Run:
    keys = redis_reactions.keys_of(LIKE.name, POST)
    run = run_script(
        stage,
        calls,
        redis_reactions.GATE,
        (keys.meta, keys.pending, keys.recent, keys.older, keys.filling, keys.dirty),
        (ACTOR, 1, "", 0, cap, NEVER_REACHED, keys.member, TTL_MS),
    )
    changed = int(redis.execute("HGET", keys.meta, "total")) - before
    waiting, newest = redis.execute("HLEN", keys.pending), redis.execute("ZCARD", keys.recent)
    _check_count(changed, calls)
    if waiting != changed or newest != min(before + changed, cap):
        raise LocalError(f"{changed} changes, but {waiting} pending and {newest} recent")
    return run


def run_script(
    stage: Stage,
    calls: int,
    script: Script,
    keys: tuple[str, ...],
    args: tuple[str | int, ...],
    *,
    most: int = ACTORS,
    clients: int = CLIENTS,
) -> Run:
    """``script`` called from many clients; they are in C, so that they are not what is measured.

    Numbers that are put in are below ``most``.
    """
    redis.execute("SCRIPT", "LOAD", script.source)
    options = ["-p", stage.redis_port, "-c", clients, "-n", calls, "-r", most, "--csv"]
    command = ["EVALSHA", script.sha, len(keys), *keys, *args]
    cpu_s = _cpu_of_redis_s()
    done = subprocess.run(
        [str(part) for part in (need_binary("redis-benchmark"), *options, *command)],
        capture_output=True,
        text=True,
        check=True,
    )
    cpu_s = _cpu_of_redis_s() - cpu_s
    row = next(csv.DictReader(io.StringIO(done.stdout[done.stdout.index('"test"') :])))
    return Run(float(row["rps"]), cpu_s / calls * 1e6)


def _cpu_of_redis_s() -> float:
    used = redis.execute("INFO", "cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def _check_count(counted: int, calls: int) -> None:
    """All but the few actors that came twice must have changed something."""
    if not calls * 0.999 <= counted <= calls:
        raise LocalError(f"of {calls} calls {counted} changed something: this measures nothing")
