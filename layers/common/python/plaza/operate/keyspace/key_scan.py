"""Big and hot keys: a scan of all of Redis in bounded steps, and the keys of most commands.

Each run continues the scan where the last one ended. SCAN returns every key that exists during the
whole scan, some of them twice.

{<shard>}:keys:scan    string  JSON: state and findings of the current scan
{<shard>}:keys:report  string  JSON: findings of the last complete scan
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.hot_keys import hot_key, spared_key
from plaza.infra.redis.shards import SHARDS
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.codec import record_codec
from plaza.infra.runtime.observability import record

MAX_BYTES = 1_000_000
MAX_MEMBERS = 10_000
MAX_SCAN_S = 30.0
HOT_MINUTES = 5
_KEYS_PER_STEP = 500  # Redis serves other clients between two steps
_SAMPLES = 5  # members that MEMORY USAGE measures
_BIGGEST = 10  # keys of each type
_MAX_REPORTED = 100
_DONE = -1
_MASTER = "master"
_SOURCES = (_MASTER, "memory", "replica")

SCAN_KEY = key_of("keys", "scan")
REPORT_KEY = key_of("keys", "report")

_LENGTHS = {"string": "STRLEN", "hash": "HLEN", "zset": "ZCARD", "set": "SCARD", "list": "LLEN"}
# Bitmaps of Bloom filters: large by design, with a fixed maximum.
_FILTERS = re.compile(r":(?:bloom|filling|filter|filter:next)$")
_MAX_FILTER_BYTES = 1_048_576 + 64
# A 128th of all shops each (docs/scaling.md): reported without an alarm.
_EXPECTED_LARGE = re.compile(r":shops:placed$")
_SECRET = re.compile(r"(auth\{\d+\}:[^:]+:).*")


class KeySize(NamedTuple):
    """A key, its memory in bytes, and its number of members (a string: bytes)."""

    bytes: int
    length: int
    type: str
    key: str

    @property
    def is_oversized(self) -> bool:
        """Whether the key exceeds 1 MB or 10,000 members; filters have a limit of their own."""
        if self.type != "string":
            return self.bytes > MAX_BYTES or self.length > MAX_MEMBERS
        if _FILTERS.search(self.key):
            return self.length > _MAX_FILTER_BYTES
        return self.bytes > MAX_BYTES

    @property
    def is_expected(self) -> bool:
        """Whether the key is large by design."""
        return bool(_EXPECTED_LARGE.search(self.key))


@dataclass
class ScanState:
    """A scan and its findings so far. ``cursors``: node -> cursor of SCAN, -1 at the end."""

    started_s: float
    cursors: dict[str, int] = field(default_factory=dict)
    scanned: int = 0
    biggest: dict[str, list[KeySize]] = field(default_factory=dict)
    oversized: list[KeySize] = field(default_factory=list)
    oversized_total: int = 0
    unexpected_total: int = 0
    finished_s: float = 0.0

    def add(self, size: KeySize) -> None:
        """Add a scanned key to the findings."""
        self.scanned += 1
        self.biggest[size.type] = _largest(self.biggest.get(size.type, []), size, _BIGGEST)
        if size.is_oversized:
            is_new = size.key not in {known.key for known in self.oversized}
            self.oversized_total += is_new
            self.unexpected_total += is_new and not size.is_expected
            self.oversized = _largest(self.oversized, size, _MAX_REPORTED)


SCAN_STATE = record_codec("key_scans", ScanState)


class HotKey(NamedTuple):
    """A key, the estimated number of its commands per second on the master, and of its reads that
    the memory of processes and replicas answered instead."""

    key: str
    commands_per_s: float
    from_memory_per_s: float = 0.0
    from_replicas_per_s: float = 0.0


def scan_keys(max_s: float = MAX_SCAN_S) -> dict[str, int]:
    """Continue the scan for about ``max_s`` and record its findings. Raises RedisDown.

    Returns ``scanned`` and ``oversized`` keys so far, and ``complete``, 1 at the end of the scan.
    """
    stored = redis.execute("GET", SCAN_KEY)
    state = SCAN_STATE.read(stored) or ScanState(clock.now_s())
    progress = continue_scan(state, max_s)
    hottest = read_hot_keys()
    metrics: dict[str, float] = {
        "keys_scanned": progress.scanned,
        "hottest_key_commands_per_s": max((hot.commands_per_s for hot in hottest), default=0),
        "hot_reads_from_memory_per_s": sum(hot.from_memory_per_s for hot in hottest),
        "hot_reads_from_replicas_per_s": sum(hot.from_replicas_per_s for hot in hottest),
    }
    if progress.finished_s:
        redis.pipeline([("SET", REPORT_KEY, SCAN_STATE.encode(progress)), ("UNLINK", SCAN_KEY)])
        sizes = [size for of_type in progress.biggest.values() for size in of_type]
        lengths = [size.length for size in sizes if size.type != "string"]
        metrics |= {
            "oversized_keys": progress.oversized_total,
            "unexpected_oversized_keys": progress.unexpected_total,
            "largest_key_bytes": max((size.bytes for size in sizes), default=0),
            "largest_key_members": max(lengths, default=0),
        }
    else:
        redis.execute("SET", SCAN_KEY, SCAN_STATE.encode(progress))
    record(
        "keys_scanned",
        metrics,
        complete=bool(progress.finished_s),
        oversized=[redact_key(size.key) for size in progress.oversized[:10]],
        hottest=[[redact_key(hot.key), hot.commands_per_s] for hot in hottest[:5]],
    )
    return {
        "scanned": progress.scanned,
        "oversized": progress.oversized_total,
        "complete": int(progress.finished_s > 0),
    }


def read_report() -> ScanState | None:
    """Return the findings of the last complete scan, None before it. Raises RedisDown."""
    return SCAN_STATE.read(redis.execute("GET", REPORT_KEY))


def continue_scan(state: ScanState, max_s: float) -> ScanState:
    """Continue a scan, one step of each node in turn, until it ends or ``max_s`` have passed.

    At least one step of each node, three round trips each. New nodes are scanned too, removed ones
    are dropped from the state. Raises RedisDown.
    """
    deadline = Deadline.in_s(max_s)
    nodes = redis.nodes()
    state.cursors = {name: state.cursors.get(name, 0) for name in nodes}
    while todo := [name for name, cursor in state.cursors.items() if cursor != _DONE]:
        for name in todo:
            cursor, keys = _scan(nodes[name], state.cursors[name])
            for size in _measure(nodes[name], keys):
                state.add(size)
            state.cursors[name] = cursor or _DONE
        if deadline.has_passed:
            break
    else:
        state.finished_s = clock.now_s()
    return state


def read_hot_keys(minutes: int = HOT_MINUTES, limit: int = 20) -> list[HotKey]:
    """Return the keys of most commands and spared reads in the last ``minutes``, by the reports of
    all processes. One round trip. Raises RedisDown."""
    now = int(clock.now_s() // 60)
    report_keys = [
        (named(f"{{{shard}}}", minute), named is spared_key)
        for minute in range(now - minutes + 1, now + 1)
        for shard in range(SHARDS)
        for named in (hot_key, spared_key)
    ]
    counts: Counter[str] = Counter()
    by_source: Counter[tuple[str, str]] = Counter()
    commands = [("ZREVRANGE", key, 0, limit - 1, "WITHSCORES") for key, _ in report_keys]
    for (_, are_spared), reply in zip(report_keys, redis.pipeline(commands), strict=True):
        for member, count in _pairs(reply):
            source, key = member.split(" ", 1) if are_spared else (_MASTER, member)
            counts[key] += int(float(count))
            by_source[key, source] += int(float(count))
    return [
        HotKey(key, *(round(by_source[key, source] / minutes / 60, 1) for source in _SOURCES))
        for key, _ in counts.most_common(limit)
    ]


def redact_key(key: str) -> str:
    """Return the key without the secret part of a key of ``auth``, for logs."""
    return _SECRET.sub(r"\1...", key)


def _scan(node: Any, cursor: int) -> tuple[int, list[str]]:
    [reply] = redis.send_to_node(node, [("SCAN", cursor, "COUNT", _KEYS_PER_STEP)])
    if isinstance(reply, Exception):
        raise RedisDown(f"Redis refused SCAN: {reply}") from reply
    return int(reply[0]), list(reply[1])


def _measure(node: Any, keys: list[str]) -> Iterator[KeySize]:
    """Yield the sizes of ``keys``, without those deleted or moved to another node meanwhile."""
    if not keys:
        return
    types = dict(zip(keys, redis.send_to_node(node, [("TYPE", key) for key in keys]), strict=True))
    known = [key for key in keys if types[key] in _LENGTHS]
    commands: list[tuple[str | int, ...]] = []
    for key in known:
        commands += [("MEMORY", "USAGE", key, "SAMPLES", _SAMPLES), (_LENGTHS[types[key]], key)]
    replies = redis.send_to_node(node, commands) if commands else []
    for key, (size, length) in zip(known, _pairs(replies), strict=True):
        if type(size) is type(length) is int:
            yield KeySize(size, length, types[key], key)


def _largest(known: list[KeySize], size: KeySize, limit: int) -> list[KeySize]:
    """Return the largest of ``known`` and ``size``, which replaces one of the same key."""
    if len(known) == limit and size <= known[-1]:
        return known
    return sorted([*(k for k in known if k.key != size.key), size], reverse=True)[:limit]


def _pairs(reply: Any) -> Iterator[tuple[Any, Any]]:
    parts = iter(reply)
    return zip(parts, parts, strict=True)
