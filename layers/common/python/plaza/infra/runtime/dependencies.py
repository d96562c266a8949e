"""Calls to Redis, MySQL, SQS and S3, each declared once, by its module, as a ``Dependency``.

``Dependency.call`` repeats work by rules, counts failures for a circuit breaker, and raises errors
of Plaza instead of a client library's. After five failures in a row the breaker opens for
two seconds; then it lets one call through.

A breaker belongs to one process. Its changes wait in ``unreported`` until they are sent along with
a command to Redis (``infra.redis.breaker_reports``).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from pybreaker import CircuitBreaker, CircuitBreakerError, CircuitBreakerListener

from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.process import on_reset

T = TypeVar("T")

_MAX_UNREPORTED = 20

_METRICS = {
    "Redis": "redis_breaker_open",
    "MySQL": "mysql_breaker_open",
    "SQS": "sqs_breaker_open",
    "S3": "s3_breaker_open",
}


class BreakerChange(NamedTuple):
    """The breaker of ``dependency`` in this process opened or closed at ``at_ms`` since 1970."""

    dependency: str
    state: str
    at_ms: int


unreported: deque[BreakerChange] = deque(maxlen=_MAX_UNREPORTED)
_declared: dict[str, Dependency] = {}


class DependencyDown(Unavailable):
    """A dependency is unreachable or cannot do its work.
    ``may_have_run`` is False if nothing was sent."""

    def __init__(self, detail: str, *, may_have_run: bool = True) -> None:
        super().__init__(detail)
        self.may_have_run = may_have_run


class RetryRule(NamedTuple):
    """Repeat work after an error for which ``applies_to`` returns True.
    Once for each of ``pauses_s``, after a random time between its two numbers."""

    applies_to: Callable[[BaseException], bool]
    pauses_s: tuple[tuple[float, float], ...] = ((0, 0),)


def _always(_: BaseException) -> bool:
    return True


def _never(_: BaseException) -> bool:
    return False


def _name_type(error: BaseException) -> str:
    return type(error).__name__


def _do_nothing(_: BaseException) -> None:
    pass


def _unchanged(error: Exception) -> Exception:
    return error


@dataclass(kw_only=True, eq=False)
class Dependency:
    """A server that is called over the network, and the meaning of its errors.

    name       in error texts and in the name of its metric
    down       the error that a caller gets for an outage
    errors     returns the errors of the client library; ``call`` passes on all others
    is_outage  whether an error is an outage; else it is the reply of a server that works
    is_unsent  whether an outage happened before anything was sent
    describe   returns the text of an outage, without values that the error may quote
    translate  returns the error that a caller gets for a reply
    clean_up   called after each error, before a repeat
    retries    rules for all work
    breaker    stops calls after failures; records when it opens and closes
    """

    name: str
    down: type[DependencyDown]
    errors: Callable[[], tuple[type[Exception], ...]]
    is_outage: Callable[[BaseException], bool] = _always
    is_unsent: Callable[[BaseException], bool] = _never
    describe: Callable[[BaseException], str] = _name_type
    translate: Callable[[Exception], Exception] = _unchanged
    clean_up: Callable[[BaseException], None] = _do_nothing
    retries: tuple[RetryRule, ...] = ()
    breaker: CircuitBreaker = field(init=False)
    _turn: RLock = field(init=False, default_factory=RLock)

    def __post_init__(self) -> None:
        self.breaker = CircuitBreaker(
            fail_max=5,
            reset_timeout=2,
            exclude=[lambda error: not self.is_outage(error)],
            name=self.name,
            listeners=[_StateRecorder()],
            throw_new_error_on_trip=False,
        )
        on_reset(self.breaker.close)
        on_reset(unreported.clear)
        _declared[self.name] = self

    @property
    def state(self) -> str:
        """The state of the breaker: ``closed``, ``open`` or ``half-open``."""
        return str(self.breaker.current_state)

    def call(self, work: Callable[[], T], *retries: RetryRule) -> T:
        """Return the result of ``work``; ``retries`` apply besides the dependency's.
        Raises ``down``, the result of ``translate``, and any other error of ``work``."""
        try:
            with self._turn:  # threads that share a client take turns
                failed = None
                # To save CPU, a closed breaker without failures gets errors only.
                if not self.breaker.fail_counter and self.breaker.current_state == "closed":
                    try:
                        return work()
                    except Exception as error:
                        failed = error
                result: T = self.breaker.call(self._repeat, work, retries, failed)
                return result
        except CircuitBreakerError:
            detail = f"{self.name} is unavailable: the circuit breaker is open"
            raise self.down(detail, may_have_run=False) from None
        except self.errors() as error:
            if self.is_outage(error):
                raise self.down(
                    f"{self.name} is unavailable: {self.describe(error)}",
                    may_have_run=not self.is_unsent(error),
                ) from error
            translated = self.translate(error)
            if translated is error:
                raise
            raise translated from error

    def _repeat(
        self, work: Callable[[], T], retries: tuple[RetryRule, ...], failed: Exception | None
    ) -> T:
        """Return the result of ``work``, repeated by the rules; ``failed``: its first error."""
        left = [(rule.applies_to, iter(rule.pauses_s)) for rule in (*self.retries, *retries)]
        while True:
            try:
                if failed is not None:
                    raise failed
                return work()
            except Exception as error:
                failed = None
                self.clean_up(error)
                pauses = (next(rest, None) for applies_to, rest in left if applies_to(error))
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise
            if any(pause_s):
                clock.sleep(random.uniform(*pause_s))


def read_own_states() -> dict[str, str | None]:
    """Return dependency -> state of its breaker in this process, None if it does not use it."""
    return {name: _declared[name].state if name in _declared else None for name in _METRICS}


class _StateRecorder(CircuitBreakerListener):
    """Records that a breaker opened (1) or closed (0); half-open is not recorded."""

    def state_change(self, cb: CircuitBreaker, old_state: Any, new_state: Any) -> None:
        if old_state is None or old_state.name == new_state.name or new_state.name == "half-open":
            return
        is_open = int(new_state.name == "open")
        unreported.append(BreakerChange(str(cb.name), new_state.name, clock.now_ms()))
        record(
            "breaker_state_changed",
            {_METRICS[str(cb.name)]: is_open, "breakers_opened": is_open},
            state=new_state.name,
        )
