"""Scheduled runs: several jobs in one run, and how the last run of each schedule ended.

A failed job does not stop the others.

{<shard>}:schedules:runs  hash  <schedule> -> JSON of its last run; <schedule>:succeeded -> of the
                                last run without an error
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import Codec, Struct, json_codec
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, logger, metrics, record

E = TypeVar("E")
R = TypeVar("R")
Handler = Callable[[E, Any], dict[str, Any]]

RUNS_KEY = key_of("schedules", "runs")
_SUCCEEDED = ":succeeded"


class ScheduledRun(NamedTuple):
    """The last run of a schedule. Times are milliseconds since 1970.

    ``error``: the type of the error that ended it, None for a success. ``succeeded_ms`` and
    ``result`` are of the last success; None and empty without one.
    """

    ended_ms: int
    duration_ms: int
    error: str | None
    succeeded_ms: int | None
    result: Mapping[str, float]


class RunEnd(Struct, frozen=True):
    """How a run ended, as stored in Redis."""

    ended_ms: int
    duration_ms: int
    error: str | None
    result: dict[str, int | float]


RUN_END: Codec[RunEnd] = json_codec("run_ends", RunEnd)


def scheduled(name: str, *, is_in_network: bool = True) -> Callable[[Handler[E]], Handler[E]]:
    """Return a decorator for the handler of a schedule, which returns numbers.

    Its lines and metrics are Powertools'. How each run ends is stored, one round trip; not
    while Redis is unavailable, nor by a function outside of the VPC. A run without an error adds 1
    to the metric ``ran``, whose absence raises the alarm of the schedule.
    """
    store = _store_run if is_in_network else _store_nothing

    def decorate(handler: Handler[E]) -> Handler[E]:
        @logger.inject_lambda_context
        @metrics.log_metrics(capture_cold_start_metric=True)
        @wraps(handler)
        def run(event: E, context: object) -> dict[str, Any]:
            began_s = clock.monotonic_s()
            try:
                result = handler(event, context)
            except Exception as error:
                store(name, began_s, type(error).__name__, {})
                raise
            store(name, began_s, None, result)
            record("schedule_ran", {"ran": 1}, schedule=name)
            return result

        decorated: Handler[E] = run
        return decorated

    return decorate


def read_runs() -> dict[str, ScheduledRun]:
    """Return schedule -> its last run. One round trip. Raises RedisDown."""
    stored = redis.execute("HGETALL", RUNS_KEY)
    ends = {name: end for name, text in stored.items() if (end := RUN_END.read(text))}
    runs = {}
    for name, end in ends.items():
        if not name.endswith(_SUCCEEDED):
            success = ends.get(name + _SUCCEEDED)
            runs[name] = ScheduledRun(
                end.ended_ms,
                end.duration_ms,
                end.error,
                success.ended_ms if success else None,
                success.result if success else {},
            )
    return runs


def run_jobs(jobs: Mapping[str, Callable[[], R]], run: int) -> dict[str, R]:
    """Run all ``jobs``; return name -> result. Raises the first error after all have run.
    Each ``run``, a number, begins with another job, so that timeouts cut off different jobs."""
    names = list(jobs)
    first = run % len(names)
    results: dict[str, R] = {}
    errors: list[Exception] = []
    for name in names[first:] + names[:first]:
        try:
            results[name] = jobs[name]()
        except Exception as error:
            record("job_failed", job=name, **error_fields(error))
            errors.append(error)
    if errors:
        raise errors[0]
    return results


def _store_nothing(*_: object) -> None:
    """Redis is in the VPC."""


def _store_run(name: str, began_s: float, error: str | None, result: Mapping[str, float]) -> None:
    duration_ms = round((clock.monotonic_s() - began_s) * 1000)
    text = RUN_END.encode(RunEnd(clock.now_ms(), duration_ms, error, dict(result)))
    fields = (name, text) if error else (name, text, name + _SUCCEEDED, text)
    with suppress(Unavailable):  # the run itself may have succeeded
        redis.execute("HSET", RUNS_KEY, *fields)
