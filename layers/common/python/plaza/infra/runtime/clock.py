"""The clock of this process: time, durations, sleep.

No other module reads the time or sleeps. Callers write ``clock.now_us()`` and do not import the
function, so a test that replaces ``now_us``, ``monotonic_s`` or ``sleep`` here replaces it
everywhere but in a ``TokenBucket``, which gets its clock as a parameter.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime


def now_us() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return now_us() // 1000


def now_s() -> float:
    """Return the time in seconds since 1970."""
    return now_us() / 1e6


def today() -> date:
    """Return the date in UTC."""
    return datetime.fromtimestamp(now_s(), UTC).date()


def monotonic_s() -> float:
    """Return seconds since an arbitrary moment, for durations: it never steps back."""
    return time.monotonic()


def cpu_s() -> float:
    """Return the CPU time that this process has used, in seconds."""
    return time.process_time()


def sleep(duration_s: float) -> None:
    """Sleep for ``duration_s`` seconds."""
    time.sleep(duration_s)


class Deadline:
    """A moment on the monotonic clock by which work has to end."""

    __slots__ = ("_at_s",)

    def __init__(self, at_s: float) -> None:
        self._at_s = at_s

    @classmethod
    def in_s(cls, duration_s: float) -> Deadline:
        """Return the deadline ``duration_s`` seconds from now."""
        return cls(monotonic_s() + duration_s)

    @property
    def has_passed(self) -> bool:
        """Whether the deadline has passed."""
        return monotonic_s() >= self._at_s

    @property
    def left_s(self) -> float:
        """The seconds that are left, 0 after the deadline."""
        return max(0.0, self._at_s - monotonic_s())
