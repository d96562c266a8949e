"""Caches: what MySQL has, kept in Redis under a named policy.

Whatever the policy, a value has the version it had in MySQL (``infra.projections``): an older fill
never replaces a newer one. It is kept for a time that is never quite the same, so that what came
together does not end together; and of what isn't there, that is remembered, for a short time.

* ``STALE_WHILE_REBUILDING``: a value ends logically. Who finds it so answers with it all the same,
  and one of those who do asks for its rebuild (``claim_rebuilds``).
* ``NEVER_STALE``: a value that ended is gone. One reader loads it, the others wait
  (``load_single_flight``).
* ``FIRST_PAGE``: likewise, of the first page of a list that anybody can read, for three seconds;
  its version is the time at which it was read (``read_first_page``).

A writer changes MySQL first, lets go of the value (``drop_all``), and again in a second
(``schedule_drop``): a reader with old data may have refilled it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from plaza.infra import clock, messages, projections, redis
from plaza.infra.clock import Deadline
from plaza.infra.errors import Unavailable
from plaza.infra.messages import integer, map_of, read
from plaza.infra.observability import error_fields, record
from plaza.infra.projections import Projection
from plaza.infra.queues import Queue, QueueDown
from plaza.infra.redis import RedisDown

DROP_AGAIN_S = 1
REBUILD_CLAIM_TTL_S = 10  # a rebuild that was asked for is waited for so long
LOCK_TTL_S = 5  # more than MySQL may take for what one reader loads
WAIT_S = 2.0
MAX_DROPS = 1_000  # of one message
_MAX_LOADS = 3
_VERSIONS = map_of(integer(0, 2**53), 1, MAX_DROPS)


class StillLoading(Unavailable):
    """Somebody else loads it, and takes long."""


@dataclass(frozen=True, slots=True)
class Policy:
    """``ttl_s``: for how long a value is kept. ``fresh_s``: after how long it is stale, None for
    never. ``negative_ttl_s``: for how long it is remembered that there is nothing."""

    ttl_s: int
    fresh_s: int | None = None
    negative_ttl_s: int = 30


STALE_WHILE_REBUILDING = Policy(ttl_s=86_400, fresh_s=300)
NEVER_STALE = Policy(ttl_s=3_600)
FIRST_PAGE = Policy(ttl_s=3, negative_ttl_s=3)


class CacheEntry(NamedTuple):
    """What MySQL has at version ``version``; ``text`` None: nothing (``version`` 0 if it never was)."""

    version: int
    text: str | None


class CachedValue(NamedTuple):
    """What Redis has. ``stale``: it was fresh once, and may be shown all the same."""

    version: int
    text: str | None
    stale: bool


class CacheDrops(NamedTuple):
    """Keys, and the versions below which their values are to be let go of."""

    versions: Mapping[str, int]

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"versions": dict(self.versions)})

    @classmethod
    def from_json(cls, body: str) -> CacheDrops:
        """What ``to_json`` wrote. Raises InvalidMessage."""
        return cls(read(messages.read_object(body), "versions", _VERSIONS))


DROPS = Queue("drops", CacheDrops.to_json, CacheDrops.from_json)
"""Values that are dropped a second time."""


def read_all(keys: Sequence[str]) -> list[CachedValue | None]:
    """What Redis has under ``keys``, None where nothing. One round trip. Raises RedisDown."""
    now_s = clock.now_s()
    return [found and _decode_value(*found, now_s) for found in projections.read_all(keys)]


def store_all(policy: Policy, entries: Mapping[str, CacheEntry], *, create: bool) -> list[bool]:
    """Keep each entry unless Redis has a newer one; ``create`` also where none is.

    Whether each was kept. One round trip. Raises RedisDown.
    """
    return projections.store_all(
        [_projection(policy, key, entry) for key, entry in entries.items()], create=create
    )


def claim_rebuilds(keys: Sequence[str]) -> list[bool]:
    """Whether each of these stale values is for the caller to have rebuilt, or another's already.

    One round trip. Raises RedisDown.
    """
    claims = redis.claim_all([f"{key}:rebuild_claim" for key in keys], REBUILD_CLAIM_TTL_S)
    return [token is not None for token in claims]


def load_single_flight(policy: Policy, key: str, load: Callable[[], CacheEntry]) -> CachedValue:
    """What ``load`` has, which one of all readers asks while the others wait for its answer.

    Raises StillLoading, RedisDown, and what ``load`` raises.
    """
    deadline, wait_s = Deadline.in_s(WAIT_S), 0.01
    while not deadline.has_passed:
        with _locked(key) as alone:
            [held] = read_all([key])
            if held is None and alone:
                return _load(policy, key, load)
        if held is not None:
            return held
        clock.sleep(wait_s * random.uniform(0.5, 1.5))
        wait_s = min(wait_s * 1.5, 0.1)
    raise StillLoading(f"{key} is being loaded", retry_after_s=1)


def read_first_page(key: str, load: Callable[[], str]) -> str:
    """Read the first page of a list, three seconds old at most; one of all readers ``load``s it.

    One round trip unless it has to be loaded. Raises StillLoading, RedisDown, and what ``load``
    raises.
    """
    [held] = read_all([key])
    if held is None:
        held = load_single_flight(FIRST_PAGE, key, lambda: CacheEntry(clock.now_us(), load()))
    return held.text or ""


def drop_first_pages(keys: Iterable[str]) -> None:
    """Let go of first pages that were read before now. One round trip. Raises RedisDown."""
    drop_all(dict.fromkeys(keys, clock.now_us()))


def drop_all(versions: Mapping[str, int]) -> None:
    """Let go of values older than these versions; nobody brings them back from now on.

    One round trip. Raises RedisDown.
    """
    projections.drop_all(versions)


def schedule_drop(versions: Mapping[str, int]) -> bool:
    """Have them let go of once more in a second; False when the queue is away."""
    try:
        DROPS.send(CacheDrops(versions), delay_s=DROP_AGAIN_S)
    except QueueDown as error:
        record("delayed_drop_not_queued", {"delayed_drops_not_queued": 1}, **error_fields(error))
        return False
    return True


@DROPS.consumer
def drop_again(drops: Sequence[CacheDrops]) -> None:
    """Let go of all that the messages name. One round trip. Safe to repeat. Raises RedisDown."""
    versions: dict[str, int] = {}
    for key, version in (pair for drop in drops for pair in drop.versions.items()):
        versions[key] = max(version, versions.get(key, 0))
    drop_all(versions)
    record("values_dropped", {"values_dropped": len(versions)})


def _load(policy: Policy, key: str, load: Callable[[], CacheEntry]) -> CachedValue:
    """What MySQL has, unless somebody was told of something newer meanwhile: then once more."""
    for _ in range(_MAX_LOADS):
        entry = load()
        if store_all(policy, {key: entry}, create=True) == [True]:
            break
    return CachedValue(entry.version, entry.text, stale=False)


@contextmanager
def _locked(key: str) -> Iterator[bool]:
    """Whether the key's lock was free; it is held until the end of the block, if it lasts."""
    lock = redis.try_lock(f"{key}:lock", LOCK_TTL_S)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            with suppress(RedisDown):  # then it ends by itself
                redis.unlock(lock)


# A value in Redis is <fresh until, seconds since 1970; 0 for ever>;<text; empty for none>.


def _projection(policy: Policy, key: str, entry: CacheEntry) -> Projection:
    ttl_s = policy.negative_ttl_s if entry.text is None else policy.ttl_s
    until_s = 0
    if policy.fresh_s is not None:
        until_s = int(clock.now_s() + policy.fresh_s * random.uniform(0.9, 1.1))
    return Projection(key, entry.version, f"{until_s};{entry.text or ''}", ttl_s)


def _decode_value(version: int, value: str, now_s: float) -> CachedValue:
    until_s, _, text = value.partition(";")
    return CachedValue(version, text or None, 0 < int(until_s) <= now_s)
