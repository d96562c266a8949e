"""The emulator's EventBridge invokes the functions of the template's schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from local.stack.stack import Stack
from tests.e2e.client import wait_until

USER = 93
MAX_FIRING_S = 90  # the emulator polls every ten seconds; the machine may be busy


def find_schedule(scheduler: Any, function: str) -> dict[str, Any]:
    """Return the deployed schedule of a function."""
    (schedules,) = (
        schedule
        for page in scheduler.get_paginator("list_schedules").paginate()
        for schedule in page["Schedules"]
        if schedule["Target"]["Arn"].endswith(f":function:{function}")
    )
    described: dict[str, Any] = scheduler.get_schedule(
        Name=schedules["Name"], GroupName=schedules["GroupName"]
    )
    return described


@pytest.fixture
def fire(stack: Stack) -> Iterator[Callable[[str], None]]:
    """``fire(logical_id)`` makes EventBridge invoke a function with its deployed schedule's target.

    It creates a schedule, because the emulator fires a one-time schedule only if it is new.
    """
    scheduler, made = stack.connect("scheduler"), []

    def now(logical_id: str) -> None:
        schedule = find_schedule(scheduler, stack.deployed.functions[logical_id])
        scheduler.create_schedule(
            Name=f"{logical_id}Now",
            ScheduleExpression=f"at({datetime.now(UTC):%Y-%m-%dT%H:%M:%S})",
            **{name: schedule[name] for name in ("Target", "FlexibleTimeWindow")},
        )
        made.append(f"{logical_id}Now")

    yield now
    for name in made:
        scheduler.delete_schedule(Name=name)


def test_a_schedule_invokes_its_function(
    fire: Callable[[str], None], rows: Callable[..., Any], sign_in: Callable[..., str]
) -> None:
    sign_in(USER)
    rows("UPDATE session SET expires_at = '2020-01-01' WHERE user_id = %s", USER)
    fire("DeleteExpired")
    wait_until(
        "the expired session is deleted",
        lambda: rows("SELECT COUNT(*) FROM session WHERE user_id = %s", USER) == ((0,),),
        MAX_FIRING_S,
    )


def test_schedules_of_each_minute_fire(stack: Stack) -> None:
    logs = stack.directory / "logs" / "functions"
    for logical_id in ("PublishUnsent", "FinalizeVouchers"):  # no test invokes these
        wait_until(f"{logical_id} ran", (logs / f"{logical_id}.log").exists, MAX_FIRING_S)


def test_every_schedule_has_a_function_that_is_forwarded_to_the_stack(stack: Stack) -> None:
    scheduler, lambdas = stack.connect("scheduler"), stack.connect("lambda")
    names = [
        schedule["Target"]["Arn"].rpartition(":")[2]
        for page in scheduler.get_paginator("list_schedules").paginate()
        for schedule in page["Schedules"]
    ]
    assert len(names) == len(set(names)) >= 12
    assert set(names) <= set(stack.deployed.functions.values())
    for name in names:
        function_configuration = lambdas.get_function_configuration(FunctionName=name)
        url = function_configuration["Environment"]["Variables"]["MINISTACK_LAMBDA_PROXY_URL"]
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
