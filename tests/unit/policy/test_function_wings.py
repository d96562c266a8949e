"""Each function, queue and alarm belongs to one wing, so that a deployment can leave it out."""

from __future__ import annotations

import json

import pytest

from cli.paths import ALARMS
from plaza.infra.contexts import WINGS
from tests.unit.policy import template
from tools.template.functions import Function
from tools.template.wings import (
    SHARED,
    read_functions,
    wing_of,
    wings_of_alarms,
    wings_of_queues,
    wings_used,
)

# Queues of core that another wing consumes: without it nothing may be sent to them.
CONSUMED_ABOVE = {("FollowsQueue", "social")}

every_function = pytest.mark.parametrize("function", read_functions(), ids=lambda f: f.name)


def test_a_function_uses_contexts_of_its_wing_and_of_the_shared_ones() -> None:
    used = {
        (function.name, wing)
        for function in read_functions()
        for wing in wings_used(function) - SHARED - {wing_of(function)}
    }
    assert used == set()


@every_function
def test_a_function_of_a_shared_wing_uses_no_other(function: Function) -> None:
    """So that what a declared wing says is also what the code does."""
    if wing_of(function) in SHARED:
        assert wings_used(function) <= SHARED


def test_every_function_of_the_template_has_a_wing() -> None:
    named = {function.name for function in read_functions()}
    written = template.resources(template.FUNCTION)
    in_folders = {
        name for name in written if str(written[name]["CodeUri"]).startswith("functions/")
    }
    assert in_folders <= named


def test_a_queue_is_consumed_in_its_wing() -> None:
    wings = wings_of_queues()
    assert wings.keys() == template.resources(template.QUEUE).keys()
    consumers = {function.name: wing_of(function) for function in read_functions()}
    above = {
        (source.queue, consumers[source.function])
        for source in template.event_sources()
        if consumers[source.function] != wings[source.queue]
    }
    assert above == CONSUMED_ABOVE
    for queue, _ in CONSUMED_ABOVE:
        assert wings[queue] == WINGS[0]


def test_an_alarm_watches_one_wing() -> None:
    alarms = wings_of_alarms(json.loads(ALARMS.read_text()))
    assert {name: wings for name, wings in alarms.items() if len(wings) > 1} == {}
    assert set().union(*alarms.values()) == set(WINGS)
