"""Layouts of a target's state in Redis: what a script pays to read and write it."""

import struct
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import Figure, Peer
from bench.gate import BASE_US, Run, race, run_script
from bench.harness import Harness
from cli.paths import CommandError
from plaza.infra.redis import connections, redis
from plaza.infra.redis.scripts import load_script

RUNS = 5
CALLS = 200_000
KEY = "{7}:like:post:7:meta"
TERM = "0123456789" * 4
_BASELINES = Path(__file__).with_name("baselines")

_COUNTED = {"base": 0, "delta": 0, "version": BASE_US, "outbox_count": 0}
_FLAGS = {"complete": 1, "bloom": 0, "deleted": 0}
_FIELDS = {"db_version": 0, "term": TERM, "protocol": 2, **_COUNTED, **_FLAGS}
_PACKED = {
    "term": TERM,
    "mode": "2:live:complete",
    "base": 0,
    "accepted": f"0:0:{BASE_US}",
    "db_version": 0,
}
_BINARY = {"term": TERM, "state": struct.pack("<5qiB", 0, 0, 0, 0, BASE_US, 0, 1)}


def measure(harness: Harness) -> list[Figure]:
    """Compare three layouts; the script of each does nothing else."""
    calls = harness.scale(CALLS)
    layouts = (("fields", _FIELDS), ("packed", _PACKED), ("binary", _BINARY))
    turns = [partial(_use, harness, calls, name, fields) for name, fields in layouts]
    fields, packed, binary = race(turns, RUNS)
    peer = Peer("ten fields", fields.cpu_us)
    return [
        Figure("state of a target, CPU of Redis: packed as text", packed.cpu_us, "us", peer),
        Figure("  packed by struct", binary.cpu_us, "us", peer),
    ]


def _use(harness: Harness, calls: int, name: str, fields: dict[str, Any]) -> Run:
    harness.clear()
    connections.client().hset(KEY, mapping=fields)
    script = load_script(_BASELINES / f"layout_{name}.lua")
    total = redis.run(script, (KEY,), ())
    run = run_script(harness, calls, script, (KEY,), ())
    if redis.run(script, (KEY,), ()) - total != calls + 1:
        raise CommandError(f"the layout {name} lost changes: invalid run")
    return run
