"""Big and hot keys: a walk through all of Redis in bounded steps, and what is asked for most.

A walk is as long as it takes; each run of it goes on where the one before ended. SCAN gives keys,
possibly twice, never all at once; a key that is there all the while is seen.

{<shard>}:keys:walk    string  JSON: where the present walk is, and what it found
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

MOST_BYTES = 1_000_000
MOST_MEMBERS = 10_000
MOST_S = 30.0
HOT_MINUTES = 5
_KEYS_PER_STEP = 500  # Redis serves others between two steps
_SAMPLES = 5  # members that MEMORY USAGE looks at
_BIGGEST = 10  # of each type
_MOST_ABOVE = 100
_DONE = -1

WALK_KEY = key_of("keys", "walk")
REPORT_KEY = key_of("keys", "report")

_LENGTHS = {"string": "STRLEN", "hash": "HLEN", "zset": "ZCARD", "set": "SCARD", "list": "LLEN"}
# Bitmaps of Bloom filters: they are meant to be that big, and grow no further.
_FILTERS = re.compile(r":(?:bloom|filling|filter|filter:next)$")
_MOST_OF_FILTER = 1_048_576 + 64
# As big as there are shops, and one slot each (docs/scaling.md): shown, but no cause for alarm.
_FORESEEN = re.compile(r":shops:[^:]+:(?:places|vers)(?::next)?$")
_HIDDEN = re.compile(r"(:(?:session|challenge):).*")


class Found(NamedTuple):
    """A key: what it takes of memory, and how many members it has (a string: how many bytes)."""

    bytes: int
    length: int
    type: str
    key: str

    @property
    def is_above(self) -> bool:
        """True when it is bigger than a key should be: 1 MB, or 10,000 members."""
        if self.type != "string":
            return self.bytes > MOST_BYTES or self.length > MOST_MEMBERS
        if _FILTERS.search(self.key):
            return self.length > _MOST_OF_FILTER
        return self.bytes > MOST_BYTES

    @property
    def is_foreseen(self) -> bool:
        """True when it is one that grows with what there is, by design."""
        return bool(_FORESEEN.search(self.key))


@dataclass
class Walk:
    """A walk and what it found so far. ``cursors``: node -> where SCAN is there, -1 at the end."""

    began_s: float
    cursors: dict[str, int] = field(default_factory=dict)
    seen: int = 0
    biggest: dict[str, list[Found]] = field(default_factory=dict)
    above: list[Found] = field(default_factory=list)
    above_total: int = 0
    unforeseen: int = 0
    ended_s: float = 0.0

    def to_json(self) -> str:
        """As it stands in Redis."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Walk:
        """What ``to_json`` wrote."""
        said = json.loads(text)
        said["above"] = [Found(*found) for found in said["above"]]
        said["biggest"] = {t: [Found(*f) for f in found] for t, found in said["biggest"].items()}
        return cls(**said)

    def note(self, found: Found) -> None:
        """A key was met."""
        self.seen += 1
        self.biggest[found.type] = _largest(self.biggest.get(found.type, []), found, _BIGGEST)
        if found.is_above:
            is_new = found.key not in {known.key for known in self.above}
            self.above_total += is_new
            self.unforeseen += is_new and not found.is_foreseen
            self.above = _largest(self.above, found, _MOST_ABOVE)


class Hot(NamedTuple):
    """A key and about how many commands a second name it, by the sample of the clients."""

    key: str
    per_s: float


def scan_keys(most_s: float = MOST_S) -> dict[str, int]:
    """Go on with the walk for about ``most_s``, and say what was found. Raises RedisDown."""
    kept = redis.execute("GET", WALK_KEY)
    found = walk(Walk.from_json(kept) if kept else Walk(clock.now_s()), most_s)
    hottest = read_hottest()
    metrics: dict[str, float] = {
        "keys_walked": found.seen,
        "hottest_key_per_s": hottest[0].per_s if hottest else 0,
    }
    if found.ended_s:
        redis.pipeline([("SET", REPORT_KEY, found.to_json()), ("DEL", WALK_KEY)])
        by_size = [big for of_type in found.biggest.values() for big in of_type]
        collections = [big.length for big in by_size if big.type != "string"]
        metrics |= {
            "keys_above_limits": found.above_total,
            "keys_unforeseen": found.unforeseen,
            "biggest_key_bytes": max((big.bytes for big in by_size), default=0),
            "most_members": max(collections, default=0),
        }
    else:
        redis.execute("SET", WALK_KEY, found.to_json())
    record(
        "keys_scanned",
        metrics,
        whole=bool(found.ended_s),
        above=[shown(big.key) for big in found.above[:10]],
        hottest=[[shown(hot.key), hot.per_s] for hot in hottest[:5]],
    )
    return {
        "walked": found.seen,
        "above_limits": found.above_total,
        "whole": int(found.ended_s > 0),
    }


def read_report() -> Walk | None:
    """What the last whole walk of ``scan_keys`` found. Raises RedisDown."""
    kept = redis.execute("GET", REPORT_KEY)
    return Walk.from_json(kept) if kept else None


def walk(walked: Walk, most_s: float) -> Walk:
    """Go on with a walk, a step of each node in turn, until it ends or the time is over.

    At least one step. Nodes that come are walked too, those that went are forgotten. A step is
    three round trips to one node. Raises RedisDown.
    """
    deadline = Deadline.in_s(most_s)
    nodes = redis.nodes()
    walked.cursors = {name: walked.cursors.get(name, 0) for name in nodes}
    while todo := [name for name, cursor in walked.cursors.items() if cursor != _DONE]:
        for name in todo:
            cursor, keys = _scan(nodes[name], walked.cursors[name])
            for found in _measure(nodes[name], keys):
                walked.note(found)
            walked.cursors[name] = cursor or _DONE
        if deadline.has_passed:
            break
    else:
        walked.ended_s = clock.now_s()
    return walked


def read_hottest(minutes: int = HOT_MINUTES, most: int = 20) -> list[Hot]:
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
    return [Hot(key, round(count / minutes / 60, 1)) for key, count in counts.most_common(most)]


def shown(key: str) -> str:
    """A key as it may be logged: not whose session it is."""
    return _HIDDEN.sub(r"\1...", key)


def _scan(node: Any, cursor: int) -> tuple[int, list[str]]:
    [answer] = redis.ask_node(node, [("SCAN", cursor, "COUNT", _KEYS_PER_STEP)])
    if isinstance(answer, Exception):
        raise RedisDown(f"A node doesn't scan: {answer}") from answer
    return int(answer[0]), list(answer[1])


def _measure(node: Any, keys: list[str]) -> Iterator[Found]:
    """What ``keys`` take; those that went or moved to another node meanwhile are left out."""
    if not keys:
        return
    types = dict(zip(keys, redis.ask_node(node, [("TYPE", key) for key in keys]), strict=True))
    known = [key for key in keys if types[key] in _LENGTHS]
    commands: list[tuple[str | int, ...]] = []
    for key in known:
        commands += [("MEMORY", "USAGE", key, "SAMPLES", _SAMPLES), (_LENGTHS[types[key]], key)]
    answers = redis.ask_node(node, commands) if commands else []
    for key, (size, length) in zip(known, _pairs(answers), strict=True):
        if type(size) is type(length) is int:
            yield Found(size, length, types[key], key)


def _largest(known: list[Found], found: Found, most: int) -> list[Found]:
    """``known`` with ``found``, which may be in it already, the biggest first."""
    if len(known) == most and found <= known[-1]:
        return known
    return sorted([*(k for k in known if k.key != found.key), found], reverse=True)[:most]


def _pairs(answer: Any) -> Iterator[tuple[Any, Any]]:
    parts = iter(answer)
    return zip(parts, parts, strict=True)
