"""The circuit breakers around Redis, MySQL, SQS and S3: all alike, and each says when it turns.

After five failures in a row nothing is asked for two seconds; then one call tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pybreaker import CircuitBreaker, CircuitBreakerListener

from plaza.infra.observability import record
from plaza.infra.process import on_reset

_METRICS = {
    "redis": "redis_breaker_open",
    "mysql": "mysql_breaker_open",
    "sqs": "sqs_breaker_open",
    "s3": "s3_breaker_open",
}


class _Teller(CircuitBreakerListener):
    """Tells that a breaker opened (1) or closed (0); that one call tries is nothing to tell."""

    def state_change(self, cb: CircuitBreaker, old_state: Any, new_state: Any) -> None:
        if old_state is None or old_state.name == new_state.name or new_state.name == "half-open":
            return
        is_open = new_state.name == "open"
        record("breaker_turned", {_METRICS[str(cb.name)]: int(is_open)}, state=new_state.name)


def new_breaker(
    name: str, exclude: Iterable[Callable[[BaseException], bool]] = ()
) -> CircuitBreaker:
    """A breaker; the errors that one of ``exclude`` is true of say nothing against what it guards.

    Each turn is a line, and its state a metric, 1 or 0: ``redis_breaker_open`` and so on.
    """
    breaker = CircuitBreaker(
        fail_max=5,
        reset_timeout=2,
        exclude=list(exclude),
        name=name,
        listeners=[_Teller()],
        throw_new_error_on_trip=False,
    )
    on_reset(breaker.close)
    return breaker
