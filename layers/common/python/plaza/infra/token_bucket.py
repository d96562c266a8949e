"""How often one process may do something: a bucket of tokens in its memory."""

from __future__ import annotations

from collections.abc import Callable

from plaza.infra.clock import monotonic_s


class TokenBucket:
    """``rate_per_s`` on the long run, ``burst`` at once."""

    def __init__(
        self, rate_per_s: float, burst: int, clock: Callable[[], float] = monotonic_s
    ) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._at_s = clock()

    def take(self) -> bool:
        """True when there was a token; it is gone then."""
        now_s = self._clock()
        self._tokens = min(self._burst, self._tokens + (now_s - self._at_s) * self._rate_per_s)
        self._at_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
