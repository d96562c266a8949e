"""Every operation, consumer and schedule that writes has a use case with faults (tests/faults)."""

from __future__ import annotations

from collections import Counter

from plaza.operate.operator_commands.commands import list_commands
from tests.faults.expected import EXPECTED
from tests.faults.harness import consumers, schedules
from tests.faults.use_cases import COMMANDS, CONSUMERS, ROUTES, SCHEDULES, USE_CASES
from tests.support.routes import operations


def test_every_operation_that_writes_has_a_use_case() -> None:
    assert {case.covers for case in ROUTES} == set(operations("post", "put", "patch", "delete"))


def test_every_consumer_and_every_schedule_has_a_use_case() -> None:
    assert {case.covers for case in CONSUMERS} == {consumer.folder for consumer in consumers()}
    assert {case.covers for case in SCHEDULES} == {schedule.folder for schedule in schedules()}


def test_use_cases_of_commands_name_commands() -> None:
    assert {case.covers for case in COMMANDS} <= list_commands().keys()


def test_names_of_use_cases_are_unique_and_known_failures_match_some() -> None:
    names = Counter(case.name for case in USE_CASES)
    assert max(names.values()) == 1
    assert all(any(map(expected.covers, USE_CASES)) for expected in EXPECTED)
