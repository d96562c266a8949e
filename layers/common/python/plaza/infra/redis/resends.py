"""The number of commands that this process sent to Redis again after a lost connection.

The first copy may have run, or may still run: a caller whose command must run once compares the
count before and after.
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
    """Return how many commands were sent again since the process started."""
    return _counter.resends


def note_resend() -> None:
    """Count one command that is sent again."""
    _counter.resends += 1


class CountingRetry(Retry):
    """The retry policy of redis-py, counting the commands that it sends again."""

    def call_with_retry(
        self,
        do: Callable[[], T],
        fail: Callable[[Exception], Any] | Callable[[Exception, int], Any],
        is_retryable: Callable[[Exception], bool] | None = None,
        with_failure_count: bool = False,
    ) -> T:
        """Call ``do`` by the policy; return its result. Raises what the last attempt raised."""
        attempts = 0

        def attempt() -> T:
            nonlocal attempts
            attempts += 1
            if attempts > 1:
                note_resend()
            return do()

        return super().call_with_retry(attempt, fail, is_retryable, with_failure_count)
