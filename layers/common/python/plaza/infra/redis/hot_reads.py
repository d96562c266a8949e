"""Reads of anonymous callers that relieve the node of a hot key.

A key that this process read before within a second is read from a replica, if the deployment has
some (``infra.redis.replicas``); one that it reads 20 times a second is kept in memory for 1 s. A
value is thus at most 2 s old. Callers with a session read the master, so that they read their own
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from plaza.infra.redis import redis, replicas
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.hot_keys import sampler
from plaza.infra.runtime.process import HotCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

WARM_PER_S = 2


class HotReads(HotCache[K, V]):
    """Values of hot keys in memory. ``name`` returns the key of Redis by which operators know the
    key of a value."""

    def __init__(self, name: Callable[[K], str], max_entries: int = 1_000) -> None:
        super().__init__(max_entries)
        self._name = name

    def source_of(self, keys: Iterable[K]) -> RunAll:
        """Return the function that reads ``keys``, which are not in memory."""
        return replicas.run_all if all(self._is_warm(key) for key in keys) else redis.run_all

    def read_all(
        self, keys: Iterable[K], load: Callable[[list[K], RunAll], Mapping[K, V]]
    ) -> dict[K, V]:
        """Return key -> value from memory, for the others from ``load(keys, source)``.
        Raises as ``load``."""
        unique = list(dict.fromkeys(keys))
        values = self.get_all(unique)
        if missing := [key for key in unique if key not in values]:
            loaded = load(missing, self.source_of(missing))
            self.put_all(loaded)
            values |= loaded
        return values

    def _is_warm(self, key: K) -> bool:
        return self.count_reads(key) >= WARM_PER_S

    def _find(self, key: K) -> tuple[V, float] | None:
        entry = super()._find(key)
        if entry is not None:
            sampler.sample_spared("memory", lambda: self._name(key))
        return entry
