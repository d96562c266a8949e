"""template.yaml for the policy tests: plain data, with CloudFormation's short tags as dicts.

The file of its AWS::Include transform is merged, as CloudFormation does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from local.stack.routes import read_routes
from tools.template.text import load

ROOT = Path(__file__).parents[3]
FUNCTIONS = ROOT / "functions"
FUNCTION = "AWS::Serverless::Function"
QUEUE = "AWS::SQS::Queue"
ALARM = "AWS::CloudWatch::Alarm"
EVENT_SOURCE = "AWS::Lambda::EventSourceMapping"


Template = dict[str, Any]


class EventSource(NamedTuple):
    """A queue that a function consumes."""

    function: str
    queue: str
    properties: dict[str, Any]


def load_template(text: str) -> Template:
    """Parse a template without its transforms."""
    template: Template = load(text)
    return template


def read_template(root: Path = ROOT) -> Template:
    """Return the template of a checkout, with the resources of the included file."""
    template = load_template((root / "template.yaml").read_text())
    own = template["Resources"]
    transform = own.pop("Fn::Transform")
    assert transform["Name"] == "AWS::Include"
    included = json.loads((root / transform["Parameters"]["Location"]).read_text())
    assert not set(own) & set(included), "a resource is declared twice"
    return template | {"Resources": own | included}


TEMPLATE = read_template()
GLOBALS: dict[str, Any] = TEMPLATE["Globals"]["Function"]


def resources(kind: str, template: Template = TEMPLATE) -> dict[str, dict[str, Any]]:
    """Return name -> properties of the resources of a type."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def metrics_of(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics that an alarm watches, one or all of its expression."""
    if "Metrics" not in alarm:
        return [alarm]
    return [m["MetricStat"]["Metric"] for m in alarm["Metrics"] if "MetricStat" in m]


def name_in(value: Any) -> str:
    """Return ``Queue`` of ``!Ref Queue``, ``!GetAtt Queue.Arn``, ``!GetAtt Queue.QueueName``."""
    match value:
        case {"Ref": name}:
            return str(name)
        case {"Fn::GetAtt": [name, _]}:
            return str(name)
        case {"Fn::GetAtt": path}:
            return str(path).partition(".")[0]
    raise AssertionError(f"{value!r} names no resource")


def queue_name(resource: str) -> str:
    """Return the code's name of a queue: ``orders_dlq`` for ``OrdersDlq``."""
    words = re.findall("[A-Z][a-z]*", resource.removesuffix("Queue"))
    return "_".join(words).lower()


def dead_letter_queues() -> set[str]:
    """Return the queues that are the DLQ of another."""
    return {
        name_in(queue["RedrivePolicy"]["deadLetterTargetArn"])
        for queue in resources(QUEUE).values()
        if "RedrivePolicy" in queue
    }


def working_queues() -> dict[str, dict[str, Any]]:
    """Return the queues with a consumer: all that are no DLQ, and DLQs that have a consumer."""
    consumed = {source.queue for source in event_sources()}
    return {
        name: queue
        for name, queue in resources(QUEUE).items()
        if name not in dead_letter_queues() or name in consumed
    }


def event_sources(template: Template = TEMPLATE) -> Iterator[EventSource]:
    """Yield each queue that invokes a function."""
    for mapping in resources(EVENT_SOURCE, template).values():
        yield EventSource(
            name_in(mapping["FunctionName"]), name_in(mapping["EventSourceArn"]), mapping
        )


def routes(template: Template = TEMPLATE) -> dict[tuple[str, str], str]:
    """Return (method, path) -> function of every route except $default and HEAD."""
    functions = {}
    for route in read_routes(template["Resources"]["Api"]["Properties"].get("DefinitionBody", {})):
        method, _, path = route.key.partition(" ")
        if path and method != "HEAD":
            functions[method, path] = re.findall(r"{(\w+)\.Arn}:live", str(route.uri))[0]
    for name, function in resources(FUNCTION, template).items():  # of versions before 0.4.0
        for event in function.get("Events", {}).values():
            if event["Type"] == "HttpApi" and "Path" in event["Properties"]:
                functions[event["Properties"]["Method"], event["Properties"]["Path"]] = name
    return functions


def folder_of(function: str, template: Template = TEMPLATE) -> Path:
    """Return the folder of a function's code."""
    return ROOT / str(resources(FUNCTION, template)[function]["CodeUri"])


def variables_of(function: str) -> set[str]:
    """Return the environment variables of a function, its own and the global ones."""
    own = resources(FUNCTION)[function].get("Environment", {}).get("Variables", {})
    return {*own, *GLOBALS["Environment"]["Variables"]}
