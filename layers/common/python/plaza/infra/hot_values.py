"""Values that are asked for so often that one answer does for all who ask within a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class HotValues(Generic[K, V]):
    """A process's own. A key is hot when it was asked for ``hot_per_s`` times within a second."""

    def __init__(
        self,
        hot_per_s: int = 20,
        kept_s: float = 1.0,
        most: int = 1_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hot_per_s, self._kept_s, self._most, self._clock = hot_per_s, kept_s, most, clock
        self._asked: dict[K, int] = {}
        self._asked_before: dict[K, int] = {}
        self._began_s = clock()
        self._values: dict[K, tuple[V, float]] = {}

    def ask(self, key: K) -> V | None:
        """The value, if it was kept less than a second ago. It counts as asked for either way."""
        now_s = self._clock()
        if now_s - self._began_s >= 1:
            self._asked_before = self._asked if now_s - self._began_s < 2 else {}
            self._asked, self._began_s = {}, now_s
        if len(self._asked) < self._most or key in self._asked:
            self._asked[key] = self._asked.get(key, 0) + 1
        value, until_s = self._values.get(key, (None, 0.0))
        return value if now_s < until_s else None

    def keep(self, key: K, value: V) -> None:
        """It was read just now: keep it if it is hot."""
        asked = max(self._asked.get(key, 0), self._asked_before.get(key, 0))
        if asked < self._hot_per_s:
            return
        if len(self._values) >= self._most and key not in self._values:
            self._values.clear()
        self._values[key] = value, self._clock() + self._kept_s

    def drop(self, key: K) -> None:
        """It has changed, as far as this process knows."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._asked, self._asked_before = {}, {}
