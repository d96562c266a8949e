"""The wings of functions, queues and alarms."""

from __future__ import annotations

from typing import Any

import pytest

from tools.template.functions import Function
from tools.template.wings import wing_of, wings_of_alarms, wings_of_queues, wings_used


@pytest.mark.parametrize(
    ("kind", "folder", "wing"),
    [
        ("api", "totals", "core"),
        ("api", "follows", "people"),
        ("api", "feed", "social"),
        ("queue", "drop_cached", "core"),
        ("queue", "save_orders", "commerce"),
        ("schedule", "dispatch_webhooks", "integrations"),
        ("ops", "rotate_secret", "core"),
    ],
)
def test_a_function_has_the_highest_wing_that_its_code_uses(
    kind: str, folder: str, wing: str
) -> None:
    assert wing_of(Function("Name", kind, folder, {})) == wing


def test_the_wing_that_functions_yaml_declares_counts() -> None:
    reactions = Function("ReactionsApi", "api", "reactions", {"Wing": "core"})
    assert wing_of(reactions) == "core"
    assert wings_used(reactions) == {"core", "people"}, "also by a LazyModule"
    with pytest.raises(ValueError, match="cellar"):
        wing_of(Function("ReactionsApi", "api", "reactions", {"Wing": "cellar"}))


def test_a_dead_letter_queue_has_the_wing_of_its_queue() -> None:
    wings = wings_of_queues()
    assert wings["OrdersQueue"] == wings["OrdersDlq"] == wings["OrdersDlqDlq"] == "commerce"
    assert wings["DropsQueue"] == "core", "of infra"


@pytest.mark.parametrize(
    ("resource", "wings"),
    [
        ({"Dimensions": [{"Name": "function", "Value": {"Ref": "FeedApi"}}]}, {"social"}),
        ({"Value": {"Fn::GetAtt": ["OrdersQueue", "QueueName"]}}, {"commerce"}),
        ({"A": {"Fn::GetAtt": ["AuthApi.Version", "Version"]}, "B": {"Ref": "X"}}, {"people"}),
        ({"A": {"Ref": "AuthApi"}, "B": {"Ref": "FeedApi"}}, {"people", "social"}),
        ({"Value": {"Ref": "Api"}}, {"core"}),
    ],
)
def test_an_alarm_has_the_wings_of_what_it_refers_to(
    resource: dict[str, Any], wings: set[str]
) -> None:
    assert wings_of_alarms({"Alarm": resource}) == {"Alarm": wings}
