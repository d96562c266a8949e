"""Caches: values of MySQL in Redis, each cache under a named policy.

Under every policy a value has its version in MySQL (``infra.derived.projections``), so an older
fill never replaces a newer one; TTLs vary by 10 %, so that values stored together do not expire
together; and absence is cached too, for a short time.

* ``STALE_WHILE_REBUILDING``: a stale value is still returned, and one of its readers queues the
  rebuild (``claim_rebuilds``).
* ``NEVER_STALE``: an expired value is loaded by one reader; the others wait
  (``load_single_flight``).
* ``FIRST_PAGE``: the same, for the first page of a public list, for 3 s; its version is the time at
  which it was read (``read_first_page``).

A writer changes MySQL, then drops the value (``drop_all``), and again 1 s later
(``schedule_drop``): a reader may have stored older data in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Generic, NamedTuple, TypeVar

from plaza.infra.derived import projections
from plaza.infra.derived.projections import Projection
from plaza.infra.queues.messages import message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.redis import locks, redis
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.codec import MAX_VERSION, TEXT, Codec, Meta, Struct
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import record

T = TypeVar("T")
U = TypeVar("U")

DROP_AGAIN_S = 1
REBUILD_CLAIM_TTL_S = 10  # a rebuild is queued at most this often
LOCK_TTL_S = 5  # longer than a load from MySQL may take
WAIT_S = 2.0
MAX_DROPS = 1_000  # keys of one message
_MAX_LOADS = 3


class StillLoading(Unavailable):
    """Another reader is still loading the value."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How long a value is cached (``ttl_s``) and fresh (``fresh_s``, None: always), and how long
    absence is cached (``negative_ttl_s``)."""

    ttl_s: int
    fresh_s: int | None = None
    negative_ttl_s: int = 30


STALE_WHILE_REBUILDING = Policy(ttl_s=86_400, fresh_s=300)
NEVER_STALE = Policy(ttl_s=3_600)
FIRST_PAGE = Policy(ttl_s=3, negative_ttl_s=3)


class CacheEntry(NamedTuple, Generic[T]):
    """A value of MySQL and its version; ``value`` is None when there is no row, ``version`` 0 when
    there never was one."""

    version: int
    value: T | None


class CachedValue(NamedTuple, Generic[T]):
    """A value of the cache. A ``stale`` one may be returned, and is due for a rebuild."""

    version: int
    value: T | None
    stale: bool


class CacheDrops(Struct, frozen=True):
    """Key -> the version below which its value is dropped."""

    versions: Annotated[
        dict[str, Annotated[int, Meta(ge=0, le=MAX_VERSION + 1)]],
        Meta(min_length=1, max_length=MAX_DROPS),
    ]


DROPS: Queue[CacheDrops] = Queue(message_codec("drops", CacheDrops), max_concurrency=2)
"""Values to drop a second time."""


def read_all(
    keys: Sequence[str], codec: Codec[T], source: RunAll = redis.run_all
) -> list[CachedValue[T] | None]:
    """Return the cached value of each key, None for a miss: no value, or one that this version
    cannot decode. One round trip; one more for keys that ``source``, a replica, lacks. Raises
    RedisDown."""
    now_s = clock.now_s()
    return [
        entry and _decode_value(*entry, codec, now_s)
        for entry in projections.read_all(keys, TEXT, source)
    ]


def read_pair(
    first: tuple[str, Codec[T]], second: tuple[str, Codec[U]], source: RunAll = redis.run_all
) -> tuple[CachedValue[T] | None, CachedValue[U] | None]:
    """Return the cached values of two keys with a codec each; otherwise as ``read_all``."""
    now_s = clock.now_s()
    of_first, of_second = projections.read_all([first[0], second[0]], TEXT, source)
    return (
        of_first and _decode_value(*of_first, first[1], now_s),
        of_second and _decode_value(*of_second, second[1], now_s),
    )


def store_all(
    policy: Policy, entries: Mapping[str, CacheEntry[T]], codec: Codec[T], *, create: bool
) -> list[bool]:
    """Store each entry unless Redis has a newer one; return whether each was stored.
    Without ``create`` a key that has no value gets none. One round trip. Raises RedisDown."""
    return projections.store_all(
        [_projection(policy, key, entry, codec) for key, entry in entries.items()], create=create
    )


def claim_rebuilds(keys: Sequence[str]) -> list[bool]:
    """Claim the rebuild of stale values for 10 s; return whether the caller got each.
    One round trip. Raises RedisDown."""
    claims = locks.claim_all([f"{key}:rebuild_claim" for key in keys], REBUILD_CLAIM_TTL_S)
    return [token is not None for token in claims]


def load_single_flight(
    policy: Policy, key: str, codec: Codec[T], load: Callable[[], CacheEntry[T]]
) -> CachedValue[T]:
    """Return the value of ``key``; one reader calls ``load``, the others wait up to 2 s.
    Raises StillLoading, RedisDown, and what ``load`` raises."""
    deadline, wait_s = Deadline.in_s(WAIT_S), 0.01
    while not deadline.has_passed:
        with _locked(key) as is_owner:
            [cached] = read_all([key], codec)
            if cached is None and is_owner:
                return _load(policy, key, codec, load)
        if cached is not None:
            return cached
        clock.sleep(wait_s * random.uniform(0.5, 1.5))
        wait_s = min(wait_s * 1.5, 0.1)
    raise StillLoading(f"{key} is still being loaded", retry_after_s=1)


def read_first_page(
    key: str, codec: Codec[list[T]], load: Callable[[], list[T]], source: RunAll = redis.run_all
) -> list[T]:
    """Return the first page of a list, at most 3 s old; one reader calls ``load``.
    One round trip if it is cached. Raises StillLoading, RedisDown, and what ``load`` raises."""
    [cached] = read_all([key], codec, source)
    if cached is None:
        cached = load_single_flight(
            FIRST_PAGE, key, codec, lambda: CacheEntry(clock.now_us(), load())
        )
    return cached.value or []


def drop_first_pages(keys: Iterable[str]) -> None:
    """Drop first pages that were read before now. One round trip. Raises RedisDown."""
    drop_all(dict.fromkeys(keys, clock.now_us()))


def drop_all(versions: Mapping[str, int]) -> None:
    """Drop values older than these versions, and refuse them from now on.
    One round trip. Raises RedisDown."""
    projections.drop_all(versions)


def schedule_drop(versions: Mapping[str, int]) -> bool:
    """Queue a second drop in 1 s; return False if the queue is unavailable. One call."""
    return DROPS.try_send(CacheDrops(dict(versions)), delay_s=DROP_AGAIN_S)


@DROPS.consumer
def drop_again(drops: Sequence[CacheDrops]) -> None:
    """Drop the values in the messages. One round trip. Safe to repeat. Raises RedisDown."""
    versions: dict[str, int] = {}
    for key, version in (pair for drop in drops for pair in drop.versions.items()):
        versions[key] = max(version, versions.get(key, 0))
    drop_all(versions)
    record("values_dropped", {"values_dropped": len(versions)})


def _load(
    policy: Policy, key: str, codec: Codec[T], load: Callable[[], CacheEntry[T]]
) -> CachedValue[T]:
    """Load and store a value; load it again if Redis got a newer version meanwhile."""
    for _ in range(_MAX_LOADS):
        entry = load()
        if store_all(policy, {key: entry}, codec, create=True) == [True]:
            break
    return CachedValue(entry.version, entry.value, stale=False)


@contextmanager
def _locked(key: str) -> Iterator[bool]:
    """Try to lock the key until the end of the block, for 5 s at most; yield whether it did."""
    lock = locks.try_lock(f"{key}:lock", LOCK_TTL_S)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            with suppress(RedisDown):  # the lock expires
                locks.unlock(lock)


# A value in Redis: <fresh until, seconds since 1970; 0: always>;<text; empty: no row>.


def _projection(policy: Policy, key: str, entry: CacheEntry[T], codec: Codec[T]) -> Projection:
    ttl_s = policy.negative_ttl_s if entry.value is None else policy.ttl_s
    until_s = 0
    if policy.fresh_s is not None:
        until_s = int(clock.now_s() + policy.fresh_s * random.uniform(0.9, 1.1))
    text = "" if entry.value is None else codec.encode(entry.value)
    return Projection(key, entry.version, f"{until_s};{text}", ttl_s)


def _decode_value(
    version: int, envelope: str, codec: Codec[T], now_s: float
) -> CachedValue[T] | None:
    until_s, _, text = envelope.partition(";")
    value = codec.read(text or None)
    if not until_s.isdecimal() or (text and value is None):
        return None
    return CachedValue(version, value, 0 < int(until_s) <= now_s)
