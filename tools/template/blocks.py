"""What ``make generate`` writes: block -> data."""

import argparse
from typing import Any

from cli.paths import TEMPLATE
from local.stack.queue_registry import load_queues
from tools.template.functions import (
    DECLARED,
    check_declared,
    importable,
    list_functions,
    make_api_function,
    make_consumer,
    make_hook,
    make_operate,
    make_schedule_role,
    make_scheduled,
)
from tools.template.queues import (
    list_dead_letters,
    make_mapping,
    make_queue_policy,
    make_queues,
)
from tools.template.routes import (
    choose_requests,
    make_definition,
    make_permission,
    read_operations,
)
from tools.template.text import load, replace_blocks


def main(args: argparse.Namespace) -> None:
    TEMPLATE.write_text(write_template(TEMPLATE.read_text()))


def write_template(template: str) -> str:
    """Return the template with its blocks as the code is. Raises ValueError."""
    with importable():
        return replace_blocks(template, make_blocks())


def make_blocks() -> dict[str, Any]:
    """Return the data of all blocks. Imports the whole product."""
    declared = load(DECLARED.read_text())
    queues = load_queues()
    api, consumers, scheduled = (
        list_functions(kind, declared) for kind in ("api", "queue", "schedule")
    )
    [operate] = (f for f in list_functions("ops", declared) if f.name == "Operate")
    check_declared(declared, [*api, *consumers, *scheduled, operate])
    of_api, of_queues = {}, {}
    for function in api:
        of_api[function.name] = make_api_function(function)
        of_api[f"{function.name}Permission"] = make_permission(function.name)
    of_api["SmokeVersion"] = make_hook(choose_requests(read_operations()))
    for function in consumers:
        queue = queues[function.queues.consumed]
        of_queues[function.name] = make_consumer(function, queue)
        of_queues[f"{function.name}Messages"] = make_mapping(function.name, queue)
    return {
        "routes": {"DefinitionBody": make_definition(read_operations())},
        "functions of the api": of_api,
        "queues": {**make_queues(), "QueuesPolicy": make_queue_policy()},
        "consumers": of_queues,
        "schedules": {
            **{function.name: make_scheduled(function) for function in scheduled},
            "ScheduleRole": make_schedule_role(scheduled),
        },
        "operate": {operate.name: make_operate(operate)},
        "dead letters": [list_dead_letters()],
        "names of the functions of the api": [[{"Ref": function.name} for function in api]],
    }
