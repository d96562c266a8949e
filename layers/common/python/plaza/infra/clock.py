"""The clock of this process: what time it is, how much has passed, and waiting.

No other module reads the time or sleeps. Callers write ``clock.now_us()`` instead of importing the
function, so a test that replaces ``now_us``, ``monotonic_s`` or ``sleep`` here does so everywhere
but in a ``TokenBucket``, which is given its clock.
"""

from __future__ import annotations

import time


def now_us() -> int:
    """Return the time, microseconds since 1970."""
    return time.time_ns() // 1000


def now_ms() -> int:
    """Return the time, milliseconds since 1970."""
    return now_us() // 1000


def now_s() -> float:
    """Return the time, seconds since 1970."""
    return now_us() / 1e6


def monotonic_s() -> float:
    """Return seconds since an arbitrary moment, for durations: it never steps back."""
    return time.monotonic()


def cpu_s() -> float:
    """Return the CPU time that this process has used."""
    return time.process_time()


def sleep(duration_s: float) -> None:
    """Wait for ``duration_s``."""
    time.sleep(duration_s)


class Deadline:
    """A moment by which work has to end."""

    __slots__ = ("_at_s",)

    def __init__(self, at_s: float) -> None:
        self._at_s = at_s

    @classmethod
    def in_s(cls, duration_s: float) -> Deadline:
        """Return the deadline that is ``duration_s`` from now."""
        return cls(monotonic_s() + duration_s)

    @property
    def has_passed(self) -> bool:
        """Whether no time is left."""
        return monotonic_s() >= self._at_s

    @property
    def left_s(self) -> float:
        """The time that is left; 0 when it has passed."""
        return max(0.0, self._at_s - monotonic_s())
