"""Token buckets: the arithmetic of all rate limits, and a bucket in memory.

Shared buckets are in Redis (infra/http/limits.py, and the state of targets and vouchers); their
scripts include the same arithmetic, bucket.inc.lua.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from plaza.infra.runtime.clock import monotonic_s
from plaza.infra.runtime.process import on_reset


def take_token(full_us: int, now_us: int, per_s: float, burst: int) -> tuple[int, int]:
    """Take a token from a bucket that is full at the time ``full_us``.

    Returns (``full_us`` with one token less, the wait in microseconds): the wait is 0 or less if
    there is a token, and only then the caller stores the new ``full_us``.
    """
    us_per_token = math.ceil(1_000_000 / per_s)
    full_us = max(now_us, full_us) + us_per_token
    return full_us, full_us - now_us - burst * us_per_token


class TokenBucket:
    """A bucket in memory: ``rate_per_s`` tokens a second, up to ``burst``."""

    def __init__(
        self, rate_per_s: float, burst: int, clock: Callable[[], float] = monotonic_s
    ) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._clock = clock
        self._fill()
        on_reset(self._fill)

    def _fill(self) -> None:
        self._full_us = 0

    def take(self) -> bool:
        """Take a token; return False if there is none."""
        now_us = int(self._clock() * 1e6)
        full_us, early_us = take_token(self._full_us, now_us, self._rate_per_s, self._burst)
        if early_us > 0:
            return False
        self._full_us = full_us
        return True
