"""The last run of each schedule, on a real Redis."""

from __future__ import annotations

import json

import pytest

from local.stack.functions import CONTEXT
from plaza.infra.jobs import scheduled_jobs
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import record
from tests.integration.conftest import Away
from tests.support.plaza import World


def test_a_run_is_stored_with_its_result(plaza: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert scheduled_jobs.read_runs() == {}
    before_ms = clock.now_ms()
    capsys.readouterr()

    @scheduled("work")
    def work(event: object, context: object) -> dict[str, int]:
        record("worked")
        return {"done": 3}

    assert work({}, CONTEXT) == {"done": 3}
    line, ran = map(json.loads, capsys.readouterr().out.splitlines()[:2])
    assert (line["event"], line["function_request_id"]) == ("worked", CONTEXT.aws_request_id)
    assert (ran["event"], ran["schedule"], ran["ran"]) == ("schedule_ran", "work", 1)
    run = scheduled_jobs.read_runs()["work"]
    assert (run.error, run.result) == (None, {"done": 3})
    assert before_ms <= run.ended_ms <= clock.now_ms()
    assert run.succeeded_ms == run.ended_ms
    assert 0 <= run.duration_ms < 1_000


def test_a_failed_run_is_stored_and_its_error_raised(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    results = iter([{"done": 3}, None])

    @scheduled("work")
    def work(event: object, context: object) -> dict[str, int]:
        result = next(results)
        if result is None:
            raise ZeroDivisionError("an error of the test")
        return result

    work({}, CONTEXT)
    success = scheduled_jobs.read_runs()["work"]
    capsys.readouterr()
    with pytest.raises(ZeroDivisionError):
        work({}, CONTEXT)
    assert '"ran"' not in capsys.readouterr().out, "it is silent"
    run = scheduled_jobs.read_runs()["work"]
    assert run.error == "ZeroDivisionError"
    assert (run.succeeded_ms, run.result) == (success.ended_ms, {"done": 3})


def test_a_run_without_redis_is_not_stored_and_succeeds(plaza: World, redis_away: Away) -> None:
    with redis_away():
        assert scheduled("work")(lambda *_: {"done": 3})({}, CONTEXT) == {"done": 3}
    assert scheduled_jobs.read_runs() == {}
