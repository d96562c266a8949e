"""How often this process sent a command to Redis again because a connection was lost.

The first copy may have been executed, or may still be: a caller that relies on its command having
run once compares the count before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from redis.retry import Retry

T = TypeVar("T")


class _Counter:
    resends = 0


_counter = _Counter()


def count_resends() -> int:
    """Return how many commands were sent again so far."""
    return _counter.resends


def note_resend() -> None:
    """Count one more."""
    _counter.resends += 1


class CountingRetry(Retry):
    """The retry policy of redis-py, which counts what it sends again."""

    def call_with_retry(
        self,
        do: Callable[[], T],
        fail: Callable[[Exception], Any] | Callable[[Exception, int], Any],
        is_retryable: Callable[[Exception], bool] | None = None,
        with_failure_count: bool = False,
    ) -> T:
        """Call ``do`` as the policy says. Raises what the last attempt raised."""
        attempts = 0

        def attempt() -> T:
            nonlocal attempts
            attempts += 1
            if attempts > 1:
                note_resend()
            return do()

        return super().call_with_retry(attempt, fail, is_retryable, with_failure_count)
