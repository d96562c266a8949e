"""The circuit breakers of all processes, as they report them to Redis.

A breaker belongs to one process, which sends each change along with its next command to Redis. An
open breaker that is used opens again every two seconds, so an older report that it is open is of a
process that ended or that has nothing to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from plaza.infra.redis import redis
from plaza.infra.redis.breaker_reports import MAX_BREAKER_REPORTS, breakers_key
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.shards import SHARDS
from plaza.infra.runtime import clock
from plaza.infra.runtime.dependencies import read_own_states

OPEN_FOR_S = 60  # how long a report that a breaker is open is believed


class BreakerReport(NamedTuple):
    """The breakers for one dependency. Times are milliseconds since 1970, of the last hour.

    ``own``: the state in this process, None if it does not use the dependency. ``open_in``:
    function -> number of its processes whose breaker is open.
    """

    dependency: str
    own: str | None
    open_in: Mapping[str, int]
    opened_ms: int | None
    closed_ms: int | None

    @property
    def is_open(self) -> bool:
        """Whether the breaker of any process is open."""
        return bool(self.open_in) or self.own == "open"


def read_breakers() -> tuple[list[BreakerReport], bool]:
    """Return (a report of each dependency, whether they include the other processes).
    One round trip."""
    try:
        changes, is_complete = _read_changes(), True
    except RedisDown:
        changes, is_complete = {}, False
    return [_build(name, own, changes) for name, own in read_own_states().items()], is_complete


def _build(
    name: str, own: str | None, changes: Mapping[tuple[str, str, str, str], int]
) -> BreakerReport:
    times = {of[1:]: at_ms for of, at_ms in changes.items() if of[0] == name}
    opened = {of[:2]: at_ms for of, at_ms in times.items() if of[2] == "open"}
    closed = {of[:2]: at_ms for of, at_ms in times.items() if of[2] == "closed"}
    believed_ms = clock.now_ms() - OPEN_FOR_S * 1000
    open_in = Counter(
        function
        for (function, process), at_ms in opened.items()
        if at_ms >= max(believed_ms, closed.get((function, process), 0) + 1)
    )
    return BreakerReport(
        name,
        own,
        dict(open_in),
        max(opened.values(), default=None),
        max(closed.values(), default=None),
    )


def _read_changes() -> dict[tuple[str, str, str, str], int]:
    """Return (dependency, function, process, state) -> when it last came. One round trip."""
    changes: dict[tuple[str, str, str, str], int] = {}
    replies = redis.pipeline(
        [
            ("ZRANGE", breakers_key(f"{{{shard}}}"), 0, MAX_BREAKER_REPORTS - 1, "WITHSCORES")
            for shard in range(SHARDS)
        ]
    )
    for reply in replies:
        for member, at_ms in zip(reply[::2], reply[1::2], strict=True):
            dependency, function, process, state = member.split(":")
            change = dependency, function, process, state
            changes[change] = max(changes.get(change, 0), int(float(at_ms)))
    return changes
