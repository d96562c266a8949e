"""The last run of each schedule, on a real Redis."""

from __future__ import annotations

import pytest

from plaza.infra.jobs import scheduled_jobs
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime import clock
from tests.integration.conftest import Away
from tests.support.plaza import World


def test_a_run_is_stored_with_its_result(plaza: World) -> None:
    assert scheduled_jobs.read_runs() == {}
    before_ms = clock.now_ms()
    assert scheduled("work")(lambda *_: {"done": 3})({}, None) == {"done": 3}
    run = scheduled_jobs.read_runs()["work"]
    assert (run.error, run.result) == (None, {"done": 3})
    assert before_ms <= run.ended_ms <= clock.now_ms()
    assert run.succeeded_ms == run.ended_ms
    assert 0 <= run.duration_ms < 1_000


def test_a_failed_run_is_stored_and_its_error_raised(plaza: World) -> None:
    results = iter([{"done": 3}, None])

    @scheduled("work")
    def work(event: object, context: object) -> dict[str, int]:
        result = next(results)
        if result is None:
            raise ZeroDivisionError("an error of the test")
        return result

    work({}, None)
    success = scheduled_jobs.read_runs()["work"]
    with pytest.raises(ZeroDivisionError):
        work({}, None)
    run = scheduled_jobs.read_runs()["work"]
    assert run.error == "ZeroDivisionError"
    assert (run.succeeded_ms, run.result) == (success.ended_ms, {"done": 3})


def test_a_run_without_redis_is_not_stored_and_succeeds(plaza: World, redis_away: Away) -> None:
    with redis_away():
        assert scheduled("work")(lambda *_: {"done": 3})({}, None) == {"done": 3}
    assert scheduled_jobs.read_runs() == {}
