"""Schedules fire: EventBridge, as it is emulated, invokes what the template says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from local.stack import Stack
from tests.e2e.client import wait_until

USER = 93
MAX_FIRING_S = 90  # the emulator looks every ten seconds; the machine may be busy


def find_schedule(scheduler: Any, function: str) -> dict[str, Any]:
    """The deployed schedule of a function."""
    (found,) = (
        schedule
        for page in scheduler.get_paginator("list_schedules").paginate()
        for schedule in page["Schedules"]
        if schedule["Target"]["Arn"].endswith(f":function:{function}")
    )
    described: dict[str, Any] = scheduler.get_schedule(
        Name=found["Name"], GroupName=found["GroupName"]
    )
    return described


def change(scheduler: Any, schedule: dict[str, Any], expression: str) -> None:
    """Let a deployed schedule, as it is otherwise, fire at another time."""
    kept = ("Name", "GroupName", "Target", "FlexibleTimeWindow", "State")
    scheduler.update_schedule(
        ScheduleExpression=expression, **{name: schedule[name] for name in kept if name in schedule}
    )


@pytest.fixture
def hourly(stack: Stack) -> Iterator[Callable[[], None]]:
    """Lets the hourly schedule of DeleteExpired fire now; it is hourly again after the test."""
    scheduler = stack.connect("scheduler")
    schedule = find_schedule(scheduler, stack.deployed.functions["DeleteExpired"])

    def fire() -> None:
        change(scheduler, schedule, f"at({datetime.now(UTC):%Y-%m-%dT%H:%M:%S})")

    yield fire
    change(scheduler, schedule, schedule["ScheduleExpression"])


def test_a_deployed_schedule_fires_and_its_function_does_its_work(
    hourly: Callable[[], None], rows: Callable[..., Any], sign_in: Callable[..., str]
) -> None:
    sign_in(USER)
    rows("UPDATE session SET expires_at = '2020-01-01' WHERE user_id = %s", USER)
    hourly()
    wait_until(
        "the expired session is deleted",
        lambda: rows("SELECT COUNT(*) FROM session WHERE user_id = %s", USER) == ((0,),),
        MAX_FIRING_S,
    )


def test_every_schedule_of_the_template_has_a_function_that_is_forwarded(stack: Stack) -> None:
    scheduler, lambdas = stack.connect("scheduler"), stack.connect("lambda")
    names = [
        schedule["Target"]["Arn"].rpartition(":")[2]
        for page in scheduler.get_paginator("list_schedules").paginate()
        for schedule in page["Schedules"]
    ]
    assert len(names) == len(set(names)) >= 12
    assert set(names) <= set(stack.deployed.functions.values())
    for name in names:
        found = lambdas.get_function_configuration(FunctionName=name)
        url = found["Environment"]["Variables"]["MINISTACK_LAMBDA_PROXY_URL"]
        assert url == f"{stack.lambda_url}/functions/{name}"


def test_the_emulator_polls_no_queue(stack: Stack) -> None:
    lambdas = stack.connect("lambda")
    states = [
        source["State"]
        for page in lambdas.get_paginator("list_event_source_mappings").paginate()
        for source in page["EventSourceMappings"]
    ]
    assert len(states) >= 15
    assert set(states) == {"Disabled"}
