"""A burst of likes of one post by several processes while the consumer is late."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from local.load.burst import Options, run_burst
from tests.support.plaza import World, forget

RECENT_CAP = 100
# 500 a second leaves a machine time for other tests. More actors leave ``recent`` while the build
# of the filter is late than the sample could miss.
BURST = Options(
    likes=1_500,
    seconds=3,
    lag_s=3,
    earlier=3 * RECENT_CAP,
    build_lag_s=1,
    sample=100,
    every_s=0.5,
)


def test_every_response_is_right_during_a_burst_with_a_late_consumer(
    plaza: World,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setenv("PLAZA_RECENT_CAP", str(RECENT_CAP))
    monkeypatch.setenv("PLAZA_REDIS_TIMEOUT_S", "5")
    forget()
    environment = {name: value for name, value in os.environ.items() if name.startswith("PLAZA_")}
    report = run_burst(environment, BURST)
    record_property("likes a second", round(report.options.likes / report.took_s))
    record_property("wrong responses", report.wrong)
    assert report.quiet_after_s is not None
    assert [moment for moment in report.observations if moment.wrong] == []
    assert report.wrong_likes == report.wrong_rows == 0
    smallest, largest = report.expected_totals
    assert smallest <= report.total <= largest
