"""Big and hot keys: a walk through all of Redis in bounded steps, and what is asked for most.

A walk is as long as it takes; each run of it goes on where the one before ended. SCAN gives keys,
possibly twice, never all at once; a key that is there all the while is seen.

{<shard>}:keys:scan    string  JSON: where the present walk is, and what it found
{<shard>}:keys:report  string  JSON: what the last whole walk found
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from plaza.infra import clock, redis
from plaza.infra.clock import Deadline
from plaza.infra.hot_keys import hot_key
from plaza.infra.observability import record
from plaza.infra.projections import key_of
from plaza.infra.redis import RedisDown
from plaza.infra.shards import SHARDS

MAX_BYTES = 1_000_000
MAX_MEMBERS = 10_000
MAX_SCAN_S = 30.0
HOT_MINUTES = 5
_KEYS_PER_STEP = 500  # Redis serves others between two steps
_SAMPLES = 5  # members that MEMORY USAGE looks at
_BIGGEST = 10  # of each type
_MAX_REPORTED = 100
_DONE = -1

SCAN_KEY = key_of("keys", "scan")
REPORT_KEY = key_of("keys", "report")

_LENGTHS = {"string": "STRLEN", "hash": "HLEN", "zset": "ZCARD", "set": "SCARD", "list": "LLEN"}
# Bitmaps of Bloom filters: they are meant to be that big, and grow no further.
_FILTERS = re.compile(r":(?:bloom|filling|filter|filter:next)$")
_MAX_FILTER_BYTES = 1_048_576 + 64
# As big as there are shops, and one slot each (docs/scaling.md): shown, but no cause for alarm.
_EXPECTED_LARGE = re.compile(r":shops:[^:]+:(?:places|versions)(?::next)?$")
_SECRET = re.compile(r"(:(?:session|challenge):).*")


class KeySize(NamedTuple):
    """A key: what it takes of memory, and how many members it has (a string: how many bytes)."""

    bytes: int
    length: int
    type: str
    key: str

    @property
    def is_oversized(self) -> bool:
        """True when it is bigger than a key should be: 1 MB, or 10,000 members."""
        if self.type != "string":
            return self.bytes > MAX_BYTES or self.length > MAX_MEMBERS
        if _FILTERS.search(self.key):
            return self.length > _MAX_FILTER_BYTES
        return self.bytes > MAX_BYTES

    @property
    def is_expected(self) -> bool:
        """True when it is one that grows with what there is, by design."""
        return bool(_EXPECTED_LARGE.search(self.key))


@dataclass
class ScanState:
    """A walk and what it found so far. ``cursors``: node -> where SCAN is there, -1 at the end."""

    started_s: float
    cursors: dict[str, int] = field(default_factory=dict)
    scanned: int = 0
    biggest: dict[str, list[KeySize]] = field(default_factory=dict)
    oversized: list[KeySize] = field(default_factory=list)
    oversized_total: int = 0
    unexpected_total: int = 0
    finished_s: float = 0.0

    def to_json(self) -> str:
        """As it stands in Redis."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ScanState:
        """What ``to_json`` wrote."""
        said = json.loads(text)
        said["oversized"] = [KeySize(*found) for found in said["oversized"]]
        said["biggest"] = {t: [KeySize(*f) for f in found] for t, found in said["biggest"].items()}
        return cls(**said)

    def add(self, found: KeySize) -> None:
        """A key was met."""
        self.scanned += 1
        self.biggest[found.type] = _largest(self.biggest.get(found.type, []), found, _BIGGEST)
        if found.is_oversized:
            is_new = found.key not in {known.key for known in self.oversized}
            self.oversized_total += is_new
            self.unexpected_total += is_new and not found.is_expected
            self.oversized = _largest(self.oversized, found, _MAX_REPORTED)


class HotKey(NamedTuple):
    """A key and about how many commands a second name it, by the sample of the clients."""

    key: str
    commands_per_s: float


def scan_keys(max_s: float = MAX_SCAN_S) -> dict[str, int]:
    """Go on with the walk for about ``max_s``, and say what was found. Raises RedisDown."""
    kept = redis.execute("GET", SCAN_KEY)
    found = continue_scan(ScanState.from_json(kept) if kept else ScanState(clock.now_s()), max_s)
    hottest = read_hot_keys()
    metrics: dict[str, float] = {
        "keys_scanned": found.scanned,
        "hottest_key_commands_per_s": hottest[0].commands_per_s if hottest else 0,
    }
    if found.finished_s:
        redis.pipeline([("SET", REPORT_KEY, found.to_json()), ("DEL", SCAN_KEY)])
        by_size = [big for of_type in found.biggest.values() for big in of_type]
        collections = [big.length for big in by_size if big.type != "string"]
        metrics |= {
            "oversized_keys": found.oversized_total,
            "unexpected_oversized_keys": found.unexpected_total,
            "largest_key_bytes": max((big.bytes for big in by_size), default=0),
            "largest_key_members": max(collections, default=0),
        }
    else:
        redis.execute("SET", SCAN_KEY, found.to_json())
    record(
        "keys_scanned",
        metrics,
        complete=bool(found.finished_s),
        oversized=[redact_key(big.key) for big in found.oversized[:10]],
        hottest=[[redact_key(hot.key), hot.commands_per_s] for hot in hottest[:5]],
    )
    return {
        "scanned": found.scanned,
        "oversized": found.oversized_total,
        "complete": int(found.finished_s > 0),
    }


def read_report() -> ScanState | None:
    """What the last whole walk of ``scan_keys`` found. Raises RedisDown."""
    kept = redis.execute("GET", REPORT_KEY)
    return ScanState.from_json(kept) if kept else None


def continue_scan(state: ScanState, max_s: float) -> ScanState:
    """Go on with a walk, a step of each node in turn, until it ends or the time is over.

    At least one step. Nodes that join are scanned too, those that went are forgotten. A step is
    three round trips to one node. Raises RedisDown.
    """
    deadline = Deadline.in_s(max_s)
    nodes = redis.nodes()
    state.cursors = {name: state.cursors.get(name, 0) for name in nodes}
    while todo := [name for name, cursor in state.cursors.items() if cursor != _DONE]:
        for name in todo:
            cursor, keys = _scan(nodes[name], state.cursors[name])
            for found in _measure(nodes[name], keys):
                state.add(found)
            state.cursors[name] = cursor or _DONE
        if deadline.has_passed:
            break
    else:
        state.finished_s = clock.now_s()
    return state


def read_hot_keys(minutes: int = HOT_MINUTES, most: int = 20) -> list[HotKey]:
    """The keys that were asked for most in the last minutes, by what processes told.

    One round trip. Raises RedisDown.
    """
    now = int(clock.now_s() // 60)
    places = [
        hot_key(f"{{{shard}}}", minute)
        for minute in range(now - minutes + 1, now + 1)
        for shard in range(SHARDS)
    ]
    counts: Counter[str] = Counter()
    for answer in redis.pipeline([("ZREVRANGE", p, 0, most - 1, "WITHSCORES") for p in places]):
        for key, count in _pairs(answer):
            counts[key] += int(float(count))
    return [HotKey(key, round(count / minutes / 60, 1)) for key, count in counts.most_common(most)]


def redact_key(key: str) -> str:
    """A key as it may be logged: not whose session it is."""
    return _SECRET.sub(r"\1...", key)


def _scan(node: Any, cursor: int) -> tuple[int, list[str]]:
    [answer] = redis.send_to_node(node, [("SCAN", cursor, "COUNT", _KEYS_PER_STEP)])
    if isinstance(answer, Exception):
        raise RedisDown(f"A node doesn't scan: {answer}") from answer
    return int(answer[0]), list(answer[1])


def _measure(node: Any, keys: list[str]) -> Iterator[KeySize]:
    """What ``keys`` take; those that went or moved to another node meanwhile are left out."""
    if not keys:
        return
    types = dict(zip(keys, redis.send_to_node(node, [("TYPE", key) for key in keys]), strict=True))
    known = [key for key in keys if types[key] in _LENGTHS]
    commands: list[tuple[str | int, ...]] = []
    for key in known:
        commands += [("MEMORY", "USAGE", key, "SAMPLES", _SAMPLES), (_LENGTHS[types[key]], key)]
    answers = redis.send_to_node(node, commands) if commands else []
    for key, (size, length) in zip(known, _pairs(answers), strict=True):
        if type(size) is type(length) is int:
            yield KeySize(size, length, types[key], key)


def _largest(known: list[KeySize], found: KeySize, most: int) -> list[KeySize]:
    """``known`` with ``found``, which may be in it already, the biggest first."""
    if len(known) == most and found <= known[-1]:
        return known
    return sorted([*(k for k in known if k.key != found.key), found], reverse=True)[:most]


def _pairs(answer: Any) -> Iterator[tuple[Any, Any]]:
    parts = iter(answer)
    return zip(parts, parts, strict=True)
