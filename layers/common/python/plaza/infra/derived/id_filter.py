"""Bloom filters of ids: requests with made-up ids cost no MySQL statement.

A writer adds a new id before it commits, so that the filter never denies an id that a client has,
and again after the commit: a build may have begun and read past the id in between. A filter is
rebuilt hourly, in pages; until the first build ends, every id may exist.

The keys of the ids called ``<ids>``, in one shard, under ``{<shard>}:<ids>:``:

    filter        bitmap  the filter in use
    filter:next   bitmap  the filter that is being built
    filter:meta   hash    of the filter in use: bits, members, built_at, build_requested_at; of the
                          next one: next_bits, next_members, build_id, build_active_at
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import SHARED, load_script

REBUILD_AFTER_MS = 3_600_000  # a rebuild removes deleted ids and repairs the filter
BUILD_REQUEST_TTL_MS = 5_000
BUILD_TIMEOUT_MS = 120_000
MAX_IDS_PER_CALL = 200
BITS_PER_ID = 32  # false positives: 2 in 10,000, and 6 in 10,000 at 24 bits an id (4 hashes)
_FULL_BITS_PER_ID = 24
_MIN_BITS, _MAX_BITS = 2**17, 2**30

BEGIN = load_script(SHARED / "begin_filter.lua")
FILL = load_script(SHARED / "fill_filter.lua")
ADD = load_script(SHARED / "add_to_filter.lua")
QUERY = load_script(SHARED / "query_filter.lua")


class FilterKeys(NamedTuple):
    """The keys of a filter."""

    meta: str
    filter: str
    next: str


class FilterReply(NamedTuple):
    """Whether the id may exist, and whether the caller has to queue a build of the filter."""

    may_exist: bool
    build_due: bool


class IdFilter:
    """The filter of the ids called ``name``."""

    def __init__(self, name: str) -> None:
        base = key_of(name, "filter")
        self.keys = FilterKeys(f"{base}:meta", base, f"{base}:next")

    def query(self, record_id: int) -> FilterReply:
        """Return whether an id may exist. One round trip. Raises RedisDown."""
        args = (record_id, _FULL_BITS_PER_ID, REBUILD_AFTER_MS, BUILD_REQUEST_TTL_MS)
        may_exist, build_due = redis.run(QUERY, self.keys[:2], args)
        return FilterReply(may_exist == 1, build_due == 1)

    def find_possible(self, ids: Sequence[int]) -> list[int]:
        """Return the ids that may exist, without requests of builds. One round trip. Raises
        RedisDown."""
        args = (_FULL_BITS_PER_ID, REBUILD_AFTER_MS, -1)
        replies = redis.run_all([Call(QUERY, self.keys[:2], (i, *args)) for i in ids])
        return [i for i, (may_exist, _) in zip(ids, replies, strict=True) if may_exist == 1]

    def is_due(self) -> bool:
        """Return whether a build is due, requested or not. One round trip. Raises RedisDown."""
        _, build_due = redis.run(QUERY, self.keys[:2], (0, _FULL_BITS_PER_ID, REBUILD_AFTER_MS, -1))
        return bool(build_due == 1)

    def add(self, ids: Sequence[int]) -> None:
        """Add ids that MySQL has or will have, any number. One round trip. Raises RedisDown."""
        redis.run_all([Call(ADD, self.keys, part) for part in _split(ids)])

    def begin(self, build: str, count: int) -> str:
        """Begin a build for ``count`` ids; return the code of begin_filter.lua. One round trip.
        Raises RedisDown."""
        bits = _MIN_BITS
        while bits < count * BITS_PER_ID and bits < _MAX_BITS:
            bits *= 2
        keys = (self.keys.meta, self.keys.next)
        return str(redis.run(BEGIN, keys, (build, bits, BUILD_TIMEOUT_MS)))

    def fill(self, build: str, ids: Sequence[int], last: bool) -> str:
        """Add a page of any size to a build; return the code of fill_filter.lua. One round trip.
        Raises RedisDown."""
        parts = _split(ids) or [()]
        calls = [Call(FILL, self.keys, (build, 0, *part)) for part in parts[:-1]]
        calls.append(Call(FILL, self.keys, (build, int(last), *parts[-1])))
        return str(redis.run_all(calls)[-1])


def _split(ids: Sequence[int]) -> list[Sequence[int]]:
    """Split ids for runs of a script; Redis serves other clients between two runs."""
    return [ids[i : i + MAX_IDS_PER_CALL] for i in range(0, len(ids), MAX_IDS_PER_CALL)]
