"""Jobs that share a scheduled run."""

from __future__ import annotations

import pytest

from plaza.infra.jobs.scheduled_jobs import run_jobs
from tests.support.failures import failing


def test_each_run_begins_with_another_job() -> None:
    ran: list[str] = []

    def job(name: str) -> int:
        ran.append(name)
        return len(name)

    jobs = {name: (lambda name=name: job(name)) for name in ("a", "bb", "ccc")}
    for run in range(3):
        assert run_jobs(jobs, run) == {"a": 1, "bb": 2, "ccc": 3}
    assert ran[::3] == ["a", "bb", "ccc"]
    assert len(ran) == 9


def test_a_failed_job_is_recorded_and_the_others_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran: list[str] = []

    def work() -> int:
        ran.append("work")
        return 1

    with pytest.raises(ZeroDivisionError):
        run_jobs(
            {"first": failing(ZeroDivisionError("an error of the test")), "second": work}, run=0
        )
    assert ran == ["work"]
    assert '"job":"first"' in capsys.readouterr().out
