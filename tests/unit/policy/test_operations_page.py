"""docs/operations.md, the runbooks, the alarms and the dashboard agree with the code."""

from __future__ import annotations

import ast
import inspect
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from plaza.core.switches import LEVELS
from plaza.infra.contexts import offers
from plaza.operate.operator_commands.commands import list_commands
from plaza.people.users.roles import Role
from tests.unit.policy import template
from tests.unit.policy.modules import ROOT, nodes_of, product_files, tree_of
from tests.unit.policy.template import ALARM, FUNCTION, resources
from tools import runbooks
from tools.runbooks import COVERAGE, write_coverage, write_index

PAGE = (ROOT / "docs" / "operations.md").read_text()
RUNBOOKS = {file.stem: file.read_text() for file in (ROOT / "docs" / "runbooks").glob("*.md")}
INDEX = RUNBOOKS.pop("README")
WITHOUT_AN_ALARM = {"key-leaked", "levels", "mysql-restored", "region-lost"}
PARTS = ["Symptom", "Likely causes", "Commands", "It is over when"]
DATA, CANARY = (
    template.load_template((ROOT / "deploy" / f"{stack}.yaml").read_text())["Resources"]
    for stack in ("data", "canary")
)
ALARMS = (
    resources(ALARM)
    | resources("AWS::CloudWatch::CompositeAlarm")
    | {n: item["Properties"] for n, item in (DATA | CANARY).items() if item["Type"] == ALARM}
)
OF_AWS = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/Lambda": {"Errors", "Invocations", "Throttles", "AsyncEventsDropped"},
    "AWS/ApiGateway": {"5xx", "Count", "Latency"},
    "AWS/Scheduler": {"TargetErrorCount", "InvocationDroppedCount"},
    "AWS/Usage": {"ResourceCount"},
}


def calls_of_record() -> list[tuple[Path, ast.Call]]:
    return [
        (file, node)
        for file in product_files()
        if "record(" in file.read_text()
        for node in nodes_of(file)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "record"
        if ast.unparse(node.args[0]) != "'metrics_flushed'"  # between requests, without an event
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
WRITTEN["expired_deleted"] = {expiry.metric for _, expiry in offers("expires")}
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
        names = [dimension["Name"] for dimension in metric["Dimensions"]]
        is_by_version = metric["MetricName"] == "server_errors"
        assert names == ["function", *(["version"] if is_by_version else [])]
        assert template.name_in(metric["Dimensions"][0]["Value"]) in resources(FUNCTION)


def queries_of(alarm: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (metric, namespace) of each query of an alarm."""
    texts = [part.get("Expression", "") for part in alarm.get("Metrics", [])]
    return [match for text in texts for match in re.findall(QUERY, text)]


QUERY = re.compile(r'SELECT \w+\((\w+)\) FROM SCHEMA\("([\w/]+)"')


@pytest.mark.parametrize("name", sorted(n for n in resources(ALARM) if queries_of(ALARMS[n])))
def test_the_metric_of_a_query_is_emitted(name: str) -> None:
    for metric, namespace in queries_of(ALARMS[name]):
        assert metric in (OF_AWS | {"Plaza": set().union(*WRITTEN.values())})[namespace]


def test_the_canary_writes_the_metrics_of_its_alarms() -> None:
    source = (ROOT / "deploy" / "canary" / "app.py").read_text()
    for name, item in CANARY.items():
        if item["Type"] == ALARM:
            assert f'"{ALARMS[name]["MetricName"]}"' in source


@pytest.mark.parametrize("name", sorted(ALARMS))
def test_an_alarm_tells_when_it_ends(name: str) -> None:
    assert ALARMS[name].get("OKActions") == ALARMS[name].get("AlarmActions")


# ---------------------------------------------------------------- what has an alarm

LOSS = re.compile(
    r"(^|_)(failed|lost|corrupt|unsent|refused|refusals|mismatched|dead|exhausted|skipped|unchecked"
    r"|postponed|drift|errors|behind|unread|spilled|delayed|dropped|paused|limited|breaker|opened"
    r"|unexpected|unsplit|lettered)(_|$)"
)
"""Words of metrics that count what was refused, lost or delayed."""
WATCHED = {
    metric
    for alarm in ALARMS.values()
    for metric in (
        *(m["MetricName"] for m in template.metrics_of(alarm) if m.get("Namespace") == "Plaza"),
        *(metric for metric, _ in queries_of(alarm)),
    )
}
DECLARED_ALARMS = yaml.safe_load((ROOT / "alarms.yaml").read_text())
EXCUSED = set(DECLARED_ALARMS["without_alarm"])
EMITTED = set().union(*WRITTEN.values())
NO_LOSS = {  # what is made up for
    "delayed_comments_counted",
    "delayed_comments_notified",
    "unsent_published",
}


@pytest.mark.parametrize("metric", sorted(m for m in EMITTED if LOSS.search(m)))
def test_a_metric_of_loss_has_an_alarm_or_a_reason(metric: str) -> None:
    assert metric in WATCHED | EXCUSED | NO_LOSS


def test_metrics_of_loss_are_found() -> None:
    assert {"spills_failed", "messages_unsent", "binlogs_lost", "server_errors"} <= {
        m for m in EMITTED if LOSS.search(m)
    }


def test_a_metric_without_an_alarm_exists_and_has_none() -> None:
    assert EXCUSED <= EMITTED
    assert not EXCUSED & WATCHED


def test_the_page_of_alarms_is_up_to_date() -> None:
    assert write_coverage(COVERAGE.read_text()) == COVERAGE.read_text(), "`make generate` writes it"


def test_each_failure_of_each_part_is_seen() -> None:
    rows = table(COVERAGE.read_text(), "# What has an alarm")
    assert len(rows) > 80
    for part, failure, seen_by in rows:
        assert part
        assert failure
        assert seen_by
    parts = {row[0] for row in rows}
    assert set(template.resources(template.QUEUE)) & parts >= set(template.working_queues())
    scheduled = {n for n, f in resources(FUNCTION).items() if f["CodeUri"].find("/schedule/") > 0}
    for name in scheduled:
        assert len([row for row in rows if row[0] == name]) == 2, "it fails, it is silent"


def test_an_alarm_that_no_row_has_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    known = runbooks.read_alarms()
    monkeypatch.setattr(runbooks, "read_alarms", lambda: known | {"OtherAlarm": "silence"})
    with pytest.raises(ValueError, match="OtherAlarm"):
        write_coverage(COVERAGE.read_text())


def test_a_row_without_an_alarm_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    known = runbooks.read_alarms()
    del known["SweepOutboxSilentAlarm"]
    monkeypatch.setattr(runbooks, "read_alarms", lambda: known)
    with pytest.raises(ValueError, match="SweepOutboxSilentAlarm, which is no alarm"):
        write_coverage(COVERAGE.read_text())


def runbook_of(name: str) -> str:
    """Return the name of the runbook that the description of an alarm ends with."""
    match = re.search(r" Runbook: docs/runbooks/([a-z-]+)\.md$", ALARMS[name]["AlarmDescription"])
    assert match, f"{name} names no runbook"
    return match[1]


def test_the_index_is_up_to_date() -> None:
    assert write_index(INDEX) == INDEX, "`make generate` writes it"


# Of one alarm for each queue, function or schedule.
OF_MANY = {"dead-letters", "queue-behind", "api-errors", "silence"}


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
        re.findall(
            r"python -m (local|ops) (?:--\S+ )*([a-z-]+(?: (?:list|show|redrive|purge))?)", pages
        )
    )
    named = {command for _, command in commands}
    assert {"dlq list", "dlq show", "dlq redrive", "dlq purge", "queues", "logs", "audit"} <= named
    texts = {
        "local": local.__main__.build_parser().format_help(),
        "ops": ops.__main__.build_parser().format_help(),
    }
    for program, command in commands:
        assert re.search(rf"^\s+{command.split()[0]}\s", texts[program], re.M), command


def test_the_page_lists_exactly_the_commands_with_their_arguments() -> None:
    table = PAGE.partition("<!-- commands: begin -->")[2].partition("<!-- commands: end -->")[0]
    listed = {}
    for name, arguments in re.findall(r"^\| `([a-z-]+)` \| (.*?) ?\|", table, re.MULTILINE):
        listed[name] = set(re.findall(r"`([a-z_]+)(?:=\w+)?`", arguments)) - {*get_args(Role)}
    assert listed == {
        name: set(inspect.signature(command.run).parameters)
        for name, command in list_commands().items()
    }


def test_a_command_of_a_runbook_exists() -> None:
    pages = "\n".join([PAGE, *RUNBOOKS.values()])
    named = set(re.findall(r"COMMAND=([a-z-]+)", pages))
    assert len(named) > 5
    assert named <= set(list_commands())


def test_no_page_leads_past_the_way_in() -> None:
    for name, text in RUNBOOKS.items():
        assert not re.search(r"mysql>|redis-cli|lambda invoke --function-name", text), name


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
