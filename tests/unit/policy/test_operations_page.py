"""docs/operations.md, the runbooks, the alarms and the dashboard agree with the code."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from plaza.switches import LEVELS
from tests.unit.policy import template
from tests.unit.policy.modules import ROOT, nodes_of, product_files, tree_of
from tests.unit.policy.template import ALARM, FUNCTION, resources
from tools.runbooks import write_index

PAGE = (ROOT / "docs" / "operations.md").read_text()
RUNBOOKS = {file.stem: file.read_text() for file in (ROOT / "docs" / "runbooks").glob("*.md")}
INDEX = RUNBOOKS.pop("README")
WITHOUT_AN_ALARM = {"backups", "levels", "mysql-restored"}
PARTS = ["Symptom", "Likely causes", "Commands", "It is over when"]
DATA = template.load_template((ROOT / "deploy" / "data.yaml").read_text())["Resources"]
ALARMS = (
    resources(ALARM)
    | resources("AWS::CloudWatch::CompositeAlarm")
    | {name: item["Properties"] for name, item in DATA.items() if item["Type"] == ALARM}
)
OF_AWS = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/Lambda": {"Errors", "Throttles"},
    "AWS/ApiGateway": {"5xx", "Count", "Latency"},
}


def calls_of_record() -> list[tuple[Path, ast.Call]]:
    return [
        (file, node)
        for file in product_files()
        if file.name != "observability.py" and "record(" in file.read_text()
        for node in nodes_of(file)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "record"
    ]


def event_of(call: ast.Call) -> set[str]:
    """Return the events that a call may write: a literal, or a choice of two."""
    match call.args[0]:
        case ast.Constant(value=str(name)):
            return {name}
        case ast.IfExp(body=ast.Constant(value=str(one)), orelse=ast.Constant(value=str(other))):
            return {one, other}
    raise AssertionError(f"the event is not a literal: {ast.dump(call.args[0])}")


def metrics_of(file: Path, call: ast.Call) -> set[str]:
    """Return the metrics that a call may emit: the keys of each dict that it may pass."""
    if len(call.args) < 2:
        return set()
    given = call.args[1]
    values = [given]
    if isinstance(given, ast.Name):
        values = [
            node.value
            for node in nodes_of(file)
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
            and given.id in [getattr(target, "id", "") for target in targets_of(node)]
            and node.value is not None
        ]
    metrics: set[str] = set()
    for value in values:
        for node in ast.walk(value):
            for key in node.keys if isinstance(node, ast.Dict) else ():
                if isinstance(key, ast.Constant):
                    metrics.add(str(key.value))
                else:  # a lookup in a table of names
                    assert isinstance(key, ast.Subscript), ast.dump(call)
                    metrics |= set(table_of(file, key))
    return metrics


def targets_of(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def table_of(file: Path, key: ast.Subscript) -> list[str]:
    for node in tree_of(file).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as table) if (
                name == getattr(key.value, "id", None)
            ):
                return [str(ast.literal_eval(value)) for value in table.values]
    raise AssertionError(f"no table of metrics in {file}")


CALLS = calls_of_record()
WRITTEN: dict[str, set[str]] = {}
for _file, _call in CALLS:
    for _event in event_of(_call):
        WRITTEN.setdefault(_event, set()).update(metrics_of(_file, _call))
ALWAYS = {"ColdStart", "cold_start_cpu_ms"}  # of the first request of a process


def table(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the table under a heading of a page, before the next heading."""
    part = re.split(r"\n##+ ", page.partition(f"{heading}\n")[2])[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def words(cell: str) -> set[str]:
    return {word.strip("` ") for word in cell.split(",") if word.strip("` ")}


OBSERVED = table(PAGE, "\n## Observe")
EVENTS = {name: words(row[1]) for row in OBSERVED for name in words(row[0])}


# ---------------------------------------------------------------- events and metrics


def test_events_and_metrics_are_found() -> None:
    assert len(WRITTEN) > 50
    assert WRITTEN["reactions_saved"] == {"accepted", "changed"}
    assert "redis_breaker_open" in WRITTEN["breaker_state_changed"]


def test_a_refusal_of_sqs_is_one_event() -> None:
    """``message_unsent``, by Queue; what is done instead of sending has an event of its own."""
    handlers = [
        (file, node)
        for file in product_files()
        for node in nodes_of(file)
        if isinstance(node, ast.ExceptHandler) and getattr(node.type, "id", "") == "QueueDown"
    ]
    assert len(handlers) > 8
    written = {
        event
        for _, handler in handlers
        for node in ast.walk(handler)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "record"
        for event in event_of(node)
    }
    assert written == {
        "order_spilled",
        "checkin_saved_directly",
        "move_failed",
        "back_off_failed",
        "dead_letter_failed",
    }


def test_the_page_lists_exactly_the_events_of_the_code() -> None:
    assert set(WRITTEN) - set(EVENTS) == set(), "missing from the page"
    assert set(EVENTS) - set(WRITTEN) == set(), "not written by the code"


@pytest.mark.parametrize("event", sorted(WRITTEN))
def test_the_metrics_of_an_event_are_on_the_page(event: str) -> None:
    shared = [row for row in OBSERVED if event in words(row[0])]
    assert len(shared) == 1, "each event is in one row"
    together = set().union(*(WRITTEN[name] for name in words(shared[0][0])))
    assert words(shared[0][1]) == together


# ---------------------------------------------------------------- alarms


@pytest.mark.parametrize("name", sorted(ALARMS))
def test_the_metric_of_an_alarm_is_emitted(name: str) -> None:
    for metric in template.metrics_of(ALARMS[name]) if name in resources(ALARM) else []:
        if metric["Namespace"] in OF_AWS:
            assert metric["MetricName"] in OF_AWS[metric["Namespace"]]
            continue
        assert metric["Namespace"] == "Plaza"
        assert metric["MetricName"] in set().union(*WRITTEN.values())
        [dimension] = metric["Dimensions"]
        assert dimension["Name"] == "function"
        assert template.name_in(dimension["Value"]) in resources(FUNCTION)


def runbook_of(name: str) -> str:
    """Return the name of the runbook that the description of an alarm ends with."""
    match = re.search(r" Runbook: docs/runbooks/([a-z-]+)\.md$", ALARMS[name]["AlarmDescription"])
    assert match, f"{name} names no runbook"
    return match[1]


def test_the_index_is_up_to_date() -> None:
    assert write_index(INDEX) == INDEX, "`make alarms` writes it"


OF_MANY = {"dead-letters", "queue-behind", "api-errors"}  # of one alarm for each queue or function


@pytest.mark.parametrize("name", sorted(n for n in ALARMS if runbook_of(n) not in OF_MANY))
def test_the_runbook_of_an_alarm_names_it(name: str) -> None:
    assert re.search(rf"\b{name}\b", RUNBOOKS[runbook_of(name)])


@pytest.mark.parametrize("name", ["dead-letters", "queue-behind"])
def test_the_runbook_of_many_queues_has_a_row_for_each(name: str) -> None:
    suffix = "DlqAlarm" if name == "dead-letters" else "AgeAlarm"
    alarms = [alarm for alarm in ALARMS if alarm.endswith(suffix) and runbook_of(alarm) == name]
    queues = {alarm.removesuffix(suffix).lower() for alarm in alarms}
    assert set(re.findall(r"^\| (\w+) \|", RUNBOOKS[name], re.M)) - {"queue"} == queues


@pytest.mark.parametrize("name", sorted(RUNBOOKS))
def test_a_runbook_has_four_parts_with_a_text_each(name: str) -> None:
    headings = re.findall(r"^## (.+)\n\n(?!#)\S", RUNBOOKS[name], re.M)
    assert headings == PARTS


def test_each_runbook_is_that_of_an_alarm_or_is_linked_by_the_index() -> None:
    assert set(RUNBOOKS) == {runbook_of(name) for name in ALARMS} | WITHOUT_AN_ALARM
    for name in WITHOUT_AN_ALARM:
        assert f"]({name}.md)" in INDEX


@pytest.mark.parametrize("name", LEVELS)
def test_the_runbook_of_levels_has_the_switches_of_each(name: str) -> None:
    page = RUNBOOKS["levels"]
    normal = asdict(LEVELS["normal"])
    thrown = [field for field, value in asdict(LEVELS[name]).items() if value != normal[field]]
    assert f"| `{name}` |" in page
    assert [field for field in thrown if f"`{field}`" not in page] == []


@pytest.mark.parametrize("name", ["ResyncAlarm", "AcknowledgementsResyncAlarm"])
def test_the_runbook_of_a_resync_states_threshold_and_period(name: str) -> None:
    alarm = ALARMS[name]
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (300, 1)
    assert f"More than {alarm['Threshold']} targets in five minutes" in RUNBOOKS[runbook_of(name)]


def test_a_command_of_the_pages_exists() -> None:
    import local.__main__
    import ops.__main__

    pages = "\n".join([PAGE, INDEX, *RUNBOOKS.values()])
    commands = set(
        re.findall(r"python -m (local|ops) (?:--\S+ )*([a-z-]+(?: (?:list|show|redrive))?)", pages)
    )
    named = {command for _, command in commands}
    assert {"dlq list", "dlq show", "dlq redrive", "queues", "logs", "audit"} <= named
    texts = {
        "local": local.__main__.build_parser().format_help(),
        "ops": ops.__main__.build_parser().format_help(),
    }
    for program, command in commands:
        assert re.search(rf"^\s+{command.split()[0]}\s", texts[program], re.M), command


def test_a_function_whose_log_a_page_prints_exists() -> None:
    pages = "\n".join([PAGE, *RUNBOOKS.values()])
    named = set(re.findall(r"python -m local logs ([A-Z]\w+)", pages))
    assert named
    assert named <= set(resources(FUNCTION))


# ---------------------------------------------------------------- the dashboard


def dashboard() -> str:
    [body] = [
        resource["Properties"]["DashboardBody"]["Fn::Sub"]
        for resource in template.TEMPLATE["Resources"].values()
        if resource["Type"] == "AWS::CloudWatch::Dashboard"
    ]
    text, values = body
    separator, lines = values["DeadLetters"]["Fn::Join"]
    return str(text).replace("${DeadLetters}", separator.join(line["Fn::Sub"] for line in lines))


def test_the_metrics_of_the_dashboard_are_emitted() -> None:
    body: dict[str, Any] = json.loads(re.sub(r"\$\{[\w.:]+\}", "x", dashboard()))
    named: set[str] = set()
    for widget in body["widgets"]:
        for metric in widget["properties"].get("metrics", []):
            if isinstance(metric[0], dict):
                named |= set(re.findall(r'MetricName="(\w+)"', metric[0]["expression"]))
            elif metric[0] == "Plaza":
                assert metric[2] == "function"
                named.add(metric[1])
    assert {"accepted", "resynced", "outbox_age_s", "consumer_lag_s", "redis_breaker_open"} <= named
    emitted = set().union(*WRITTEN.values()) | ALWAYS | set().union(*OF_AWS.values())
    assert named - emitted == set()


def test_the_resources_of_the_dashboard_exist() -> None:
    named = set(re.findall(r"\$\{(\w+)(?:\.\w+)?\}", dashboard()))
    assert named <= set(template.TEMPLATE["Resources"])
    assert template.dead_letter_queues() <= named
