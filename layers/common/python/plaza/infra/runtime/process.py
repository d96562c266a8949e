"""State of this process: values created once, and local caches.

A Lambda process serves one request at a time, so nothing here takes a lock. Create these objects at
the top of a module: they register for ``reset_process`` and live as long as the process.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any, Generic, TypeVar

from plaza.infra.runtime import clock

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_UNSET: Any = object()

_resets: list[Callable[[], object]] = []
_caches: list[LocalCache[Any, Any]] = []


def on_reset(reset: Callable[[], object]) -> None:
    """Register ``reset`` to be called by ``reset_process``."""
    _resets.append(reset)


def reset_process() -> None:
    """Reset all state as in a new process, and close its connections. For tests."""
    for reset in _resets:
        reset()
    clear_caches()


def clear_caches() -> None:
    """Clear all local caches and keep the connections."""
    for cache in _caches:
        cache.clear()


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect no reference cycles until the block ends, or as before it.

    A batch of a thousand events creates enough objects for dozens of collections, which find
    nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Lazy(Generic[T]):
    """A value that ``make`` creates at its first use, such as a client. ``close`` closes it."""

    def __init__(self, make: Callable[[], T], close: Callable[[T], object] | None = None) -> None:
        self._make, self._close = make, close
        self._value: T = _UNSET
        on_reset(self.reset)

    def get(self) -> T:
        """Return the value. Raises what ``make`` raises; then the next call tries again."""
        if self._value is _UNSET:
            self._value = self._make()
        return self._value

    def peek(self) -> T | None:
        """Return the value, None before it is created."""
        return None if self._value is _UNSET else self._value

    def reset(self) -> None:
        """Close and drop the value; the next ``get`` creates another."""
        value = self._value
        self.forget()
        if value is not _UNSET and self._close is not None:
            self._close(value)

    def forget(self) -> None:
        """Drop the value without closing it: after a fork it belongs to the parent process."""
        self._value = _UNSET


class LocalCache(Generic[K, V]):
    """A cache in memory of up to ``max_entries``, each for up to ``ttl_s``. A value may be None.
    A full cache drops the least recently used entry."""

    def __init__(self, max_entries: int, ttl_s: float = inf) -> None:
        self._max_entries, self._ttl_s = max_entries, ttl_s
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()  # value, expires at
        _caches.append(self)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return self._find(key) is not None

    def get(self, key: K) -> V | None:
        """Return the value of ``key``, None if it is not cached."""
        entry = self._find(key)
        return entry[0] if entry else None

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return key -> value of the ``keys`` that are cached."""
        return {key: entry[0] for key in keys if (entry := self._find(key))}

    def get_or_load(self, key: K, load: Callable[[], V]) -> V:
        """Return the value of ``key``; load and cache it if it is missing. Raises as ``load``."""
        entry = self._find(key)
        if entry:
            return entry[0]
        value = load()
        self.put(key, value)
        return value

    def put(self, key: K, value: V, ttl_s: float = inf) -> None:
        """Cache a value for the cache's ``ttl_s``, or for this one if it is shorter."""
        self._entries[key] = value, clock.monotonic_s() + min(self._ttl_s, ttl_s)
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def put_all(self, values: Mapping[K, V]) -> None:
        """Cache many values."""
        for key, value in values.items():
            self.put(key, value)

    def drop(self, key: K) -> None:
        """Drop the value of ``key``, if it is cached."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()

    def _find(self, key: K) -> tuple[V, float] | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if clock.monotonic_s() >= entry[1]:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry


class HotCache(LocalCache[K, V]):
    """A local cache of hot keys only: those read ``hot_per_s`` times in this or the last second."""

    def __init__(self, max_entries: int, ttl_s: float = 1.0, hot_per_s: int = 20) -> None:
        super().__init__(max_entries, ttl_s)
        self._hot_per_s = hot_per_s
        self._reads: dict[K, int] = {}
        self._previous_reads: dict[K, int] = {}
        self._began_s = -inf

    def _find(self, key: K) -> tuple[V, float] | None:
        now_s = clock.monotonic_s()
        if now_s - self._began_s >= 1:
            self._previous_reads = self._reads if now_s - self._began_s < 2 else {}
            self._reads, self._began_s = {}, now_s
        if len(self._reads) < self._max_entries or key in self._reads:
            self._reads[key] = self._reads.get(key, 0) + 1
        return super()._find(key)

    def put(self, key: K, value: V, ttl_s: float = inf) -> None:
        """Cache a value as ``LocalCache.put`` does, if its key is hot."""
        if self.count_reads(key) >= self._hot_per_s:
            super().put(key, value, ttl_s)

    def count_reads(self, key: K) -> int:
        """Return the reads of ``key`` in this or the last second, the higher number."""
        return max(self._reads.get(key, 0), self._previous_reads.get(key, 0))

    def clear(self) -> None:
        """Drop all values and read counts."""
        super().clear()
        self._reads, self._previous_reads, self._began_s = {}, {}, -inf
