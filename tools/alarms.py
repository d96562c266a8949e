"""alarms.json: the alarms as CloudFormation, generated from alarms.yaml.

``make alarms`` writes it, and the index of runbooks. template.yaml includes it (``AWS::Include``).
A policy test fails when it is out of date. ``python -m tools alarms --expand`` prints the template
with its alarms inserted.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from cli.paths import ALARMS, ROOT, TEMPLATE
from tools.template.functions import list_functions

DECLARED = ROOT / "alarms.yaml"
RUNBOOKS = "docs/runbooks"
_SECTIONS = {  # section -> namespace, dimension, key of the resource
    "errors": ("AWS/Lambda", "FunctionName", "function"),
    "metrics": ("Plaza", "function", "function"),
    "api": ("AWS/ApiGateway", "ApiId", "api"),
    "account": ("AWS/Lambda", "", ""),
}
_ACTIONS = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], []]}
_MIN_REQUESTS = 100  # in a window; of fewer, one error is a large share
_UNCHECKED = re.compile(r"    config: \{ ignore_checks: .* \}\n")
_INCLUDE = """\
  Fn::Transform:
    Name: AWS::Include
    Parameters: {{ Location: {} }}
"""
_OF_BALANCER = {  # metric of API Gateway -> metrics of a load balancer, whose sum it is
    "5xx": ("HTTPCode_ELB_5XX_Count", "HTTPCode_Target_5XX_Count"),
    "Count": ("RequestCount",),
    "Latency": ("TargetResponseTime",),
}


def main(args: argparse.Namespace) -> None:
    if args.expand:
        sys.stdout.write(expand_template(TEMPLATE.read_text()))
    else:
        from tools.runbooks import INDEX, write_index

        ALARMS.write_text(make_alarms())
        INDEX.write_text(write_index(INDEX.read_text()))


def make_alarms() -> str:
    """Return the included file as JSON text, one alarm a line; deterministic."""
    return "{\n" + ",\n".join(_render_entries()) + "\n}\n"


def expand_template(template: str) -> str:
    """Replace the include of a template with the alarms, so that cfn-lint checks references to them
    too. Raises ValueError without an include."""
    return insert_included(template, ALARMS.name, _render_entries())


def insert_included(template: str, file: str, entries: Iterable[str]) -> str:
    """Replace the include of a file with its resources. Raises ValueError without an include."""
    include = _INCLUDE.format(file)
    if template.count(include) != 1:
        raise ValueError(f"the template must include {file} once")
    checked = _UNCHECKED.sub("    config: {}\n", template)
    return checked.replace(include, "".join(f"{entry}\n" for entry in entries))


def make_balancer_alarms() -> dict[str, Any]:
    """Return the alarms of the API for a load balancer, under the same names: name -> resource."""
    declared = yaml.safe_load(DECLARED.read_text())
    alarms: dict[str, Any] = {}
    for name, options in declared["api"].items():
        watch = options["watch"]
        alarms[name] = _make_on_balancer(
            _describe(options["text"], options["runbook"]),
            watch["metric"],
            statistic=watch.get("statistic", "Sum"),
            above=watch["above"] / 1000 if watch["metric"] == "Latency" else watch["above"],  # s
            periods=watch["periods"],
            period_s=watch["period_s"],
        )
        alarms[name]["Properties"]["AlarmActions"] = [{"Ref": "AlarmTopicArn"}]
    for name, options in declared["error_rates"].items():
        alarms[name] = _make_on_balancer(
            _describe(options["text"], options["runbook"]),
            "5xx",
            of="Count",
            above=options["above_percent"],
            period_s=options["window_s"],
        )
    for name, options in declared["both"].items():
        alarms[name] = _make_composite(**options)
    return alarms


def _make_on_balancer(
    text: str,
    metric: str,
    *,
    above: float,
    period_s: int,
    periods: int = 1,
    statistic: str = "Sum",
    of: str = "",
) -> dict[str, Any]:
    """Return an alarm on a metric of API Gateway, or on its share ``of`` another one in percent."""

    def stat(number: int, name: str) -> dict[str, Any]:
        balancer = {"Fn::GetAtt": ["Balancer", "LoadBalancerFullName"]}
        source = {
            "Namespace": "AWS/ApplicationELB",
            "MetricName": name,
            "Dimensions": [{"Name": "LoadBalancer", "Value": balancer}],
        }
        metric_stat = {"Metric": source, "Period": period_s, "Stat": statistic}
        return {"Id": f"m{number}", "MetricStat": metric_stat, "ReturnData": False}

    names = _OF_BALANCER[metric]
    total = " + ".join(f"FILL(m{number}, 0)" for number in range(len(names)))
    if of:
        requests = f"m{len(names)}"
        names += _OF_BALANCER[of]
        total = f"IF({requests} > {_MIN_REQUESTS}, 100 * ({total}) / {requests}, 0)"
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Condition": "HasAlarmTopic",
        "Properties": {
            "AlarmDescription": text,
            "Metrics": [
                {"Id": "watched", "Expression": total},
                *(stat(number, name) for number, name in enumerate(names)),
            ],
            "EvaluationPeriods": periods,
            "Threshold": above,
            "ComparisonOperator": "GreaterThanThreshold",
            "TreatMissingData": "notBreaching",
        },
    }


def _render_entries() -> Iterator[str]:
    declared = yaml.safe_load(DECLARED.read_text())
    for name, properties in _make_all(declared):
        resource = {"Type": "AWS::CloudWatch::Alarm", "Properties": properties}
        if "Metrics" in properties:  # the emulator, which has no topic, has no expressions either
            resource["Condition"] = "HasAlarmTopic"
        yield f"  {json.dumps(name)}: {json.dumps(resource)}"
    for name, options in declared["both"].items():
        yield f"  {json.dumps(name)}: {json.dumps(_make_composite(**options))}"


def _make_all(declared: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for queue, options in declared["queues"].items():
        yield from _make_of_queue(queue, **options)
    for section, (namespace, dimension, key) in _SECTIONS.items():
        for name, options in declared[section].items():
            watch = {"metric": "Errors", "statistic": "Sum"} | options["watch"]
            resource = {"Ref": watch.pop(key)} if key else {}
            yield (
                name,
                _make_alarm(
                    _describe(options["text"], options["runbook"]),
                    metric=(namespace, watch.pop("metric")),
                    dimension=(dimension, resource),
                    **watch,
                ),
            )
    for name, options in declared["error_rates"].items():
        yield name, _make_error_rate(**options)
    for function in list_functions("api", {}):
        yield f"{function.name}FailuresAlarm", _make_failures(function.name, **declared["failures"])


def _describe(text: str, runbook: str) -> str:
    return f"{text} Runbook: {RUNBOOKS}/{runbook}.md"


def _make_of_queue(
    queue: str,
    *,
    age_text: str,
    dead_lettered: str = "",
    runbook: str = "",
    above_s: int = 300,
    minutes: int = 5,
) -> Iterator[tuple[str, dict[str, Any]]]:
    name = queue.removesuffix("Queue")
    dead_lettered = dead_lettered or (
        f"A message of {queue} was dead-lettered. The cause is in the logs of the consumer."
    )
    yield (
        f"{name}DlqAlarm",
        _make_alarm(
            _describe(dead_lettered, runbook or "dead-letters"),
            metric=("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
            dimension=("QueueName", {"Fn::GetAtt": [f"{name}Dlq", "QueueName"]}),
            statistic="Maximum",
            above=0,
            period_s=60,
        ),
    )
    yield (
        f"{name}AgeAlarm",
        _make_alarm(
            _describe(f"{queue} is behind. {age_text}", runbook or "queue-behind"),
            metric=("AWS/SQS", "ApproximateAgeOfOldestMessage"),
            dimension=("QueueName", {"Fn::GetAtt": [queue, "QueueName"]}),
            statistic="Maximum",
            above=above_s,
            periods=minutes,
            period_s=60,
        ),
    )


def _make_alarm(
    text: str,
    *,
    metric: tuple[str, str],
    dimension: tuple[str, dict[str, Any]],
    statistic: str,
    above: int,
    periods: int = 1,
    period_s: int = 300,
) -> dict[str, Any]:
    """Return the properties in long form: an included file cannot have tags such as ``!Ref``."""
    is_percentile = statistic.startswith("p")
    return {
        "AlarmDescription": text,
        "Namespace": metric[0],
        "MetricName": metric[1],
        "Dimensions": [{"Name": dimension[0], "Value": dimension[1]}] if dimension[0] else [],
        "ExtendedStatistic" if is_percentile else "Statistic": statistic,
        "Period": period_s,
        "EvaluationPeriods": periods,
        "Threshold": above,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
        "AlarmActions": _ACTIONS,
    }


def _make_error_rate(
    *, text: str, runbook: str, api: str, above_percent: float, window_s: int
) -> dict[str, Any]:
    """Return an alarm on the share of 5xx in a window. It notifies by one of ``both`` only."""

    def metric(name: str, id_: str) -> dict[str, Any]:
        of_api = {"Name": "ApiId", "Value": {"Ref": api}}
        source = {"Namespace": "AWS/ApiGateway", "MetricName": name, "Dimensions": [of_api]}
        stat = {"Metric": source, "Period": window_s, "Stat": "Sum"}
        return {"Id": id_, "MetricStat": stat, "ReturnData": False}

    rate = f"IF(requests > {_MIN_REQUESTS}, 100 * errors / requests, 0)"
    return {
        "AlarmDescription": _describe(text, runbook),
        "Metrics": [
            {"Id": "rate", "Expression": rate},
            metric("5xx", "errors"),
            metric("Count", "requests"),
        ],
        "EvaluationPeriods": 1,
        "Threshold": above_percent,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
    }


def _make_failures(function: str, *, text: str, runbook: str, above: int) -> dict[str, Any]:
    """Return an alarm on the failures of a function: those that Lambda sees, and its own 5xx.

    A deployment moves its traffic back when it is raised, so it may not refer to the API, which
    refers to the deployed version.
    """

    def metric(id_: str, namespace: str, name: str, dimension: str) -> dict[str, Any]:
        of_function = {"Name": dimension, "Value": {"Ref": function}}
        source = {"Namespace": namespace, "MetricName": name, "Dimensions": [of_function]}
        return {
            "Id": id_,
            "MetricStat": {"Metric": source, "Period": 60, "Stat": "Sum"},
            "ReturnData": False,
        }

    return {
        "AlarmDescription": _describe(f"{function} fails. {text}", runbook),
        "Metrics": [
            {"Id": "failures", "Expression": "FILL(errors, 0) + FILL(own, 0)"},
            metric("errors", "AWS/Lambda", "Errors", "FunctionName"),
            metric("own", "Plaza", "server_errors", "function"),
        ],
        "EvaluationPeriods": 1,
        "Threshold": above,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
        "AlarmActions": [{"Ref": "AlarmTopicArn"}],
    }


def _make_composite(*, text: str, runbook: str, alarms: list[str]) -> dict[str, Any]:
    """Return an alarm that is raised while all of ``alarms`` are."""
    return {
        "Type": "AWS::CloudWatch::CompositeAlarm",
        "Condition": "HasAlarmTopic",
        "Properties": {
            "AlarmDescription": _describe(text, runbook),
            "AlarmRule": {"Fn::Sub": " AND ".join(f'ALARM("${{{name}}}")' for name in alarms)},
            "AlarmActions": [{"Ref": "AlarmTopicArn"}],
        },
    }
