"""alarms.json: the alarms as CloudFormation, generated from alarms.yaml.

``make generate`` writes it, and the index of runbooks. template.yaml includes it
(``AWS::Include``). A policy test fails when it is out of date. ``python -m tools alarms --expand``
prints the template with its alarms inserted.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from cli.includes import insert_included
from cli.paths import ROOT, TEMPLATE
from tools.template.functions import DECLARED as FUNCTIONS
from tools.template.functions import list_functions
from tools.template.text import load

DECLARED = ROOT / "alarms.yaml"
RUNBOOKS = "docs/runbooks"
_SECTIONS = {  # section -> namespace, dimension, key of the resource
    "errors": ("AWS/Lambda", "FunctionName", "function"),
    "metrics": ("Plaza", "function", "function"),
    "api": ("AWS/ApiGateway", "ApiId", "api"),
    "account": ("AWS/Lambda", "", ""),
}
_TOPIC = [{"Ref": "AlarmTopicArn"}]
_NOTIFY = {"AlarmActions": _TOPIC, "OKActions": _TOPIC}
_ACTIONS = {name: {"Fn::If": ["HasAlarmTopic", _TOPIC, []]} for name in _NOTIFY}
_MIN_REQUESTS = 100  # in a window; of fewer, one error is a large share
_UNITS_S = {"minute": 60, "hour": 3600, "day": 86400}
_DAILY = re.compile(r"cron\(\d+ \d+ \* \* \? \*\)")
_MIN_SILENCE_S = 900  # a schedule of each minute may miss some runs while a store fails over
_LATE_S = 7200  # how late a run of a day may be
MAX_WINDOW_S = 86400
"""The longest time that CloudWatch evaluates, for periods below an hour."""
MAX_HOURLY_WINDOW_S = 7 * 86400
"""The same for periods of an hour and more."""
_OF_BALANCER = {  # metric of API Gateway -> metrics of a load balancer, whose sum it is
    "5xx": ("HTTPCode_ELB_5XX_Count", "HTTPCode_Target_5XX_Count"),
    "Count": ("RequestCount",),
    "Latency": ("TargetResponseTime",),
}


class Silence(NamedTuple):
    """When a schedule counts as silent: ``periods`` of ``period_s`` in a row without a run."""

    period_s: int
    periods: int


def limit_silence(schedule: str) -> Silence:
    """Return when a schedule (``rate(5 minutes)``, or a ``cron`` of each day) is silent: after
    three missed runs and a quarter of an hour, or two hours after the run of a day. Raises
    ValueError for one that CloudWatch cannot watch or whose interval is not understood."""
    rate = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", schedule)
    if rate is not None:
        interval_s = int(rate[1]) * _UNITS_S[rate[2]]
    elif _DAILY.fullmatch(schedule):
        interval_s = _UNITS_S["day"]
    else:
        raise ValueError(f"{schedule} is neither a rate nor a time of each day")
    if interval_s < _UNITS_S["day"]:
        silence_s = max(3 * interval_s, _MIN_SILENCE_S)
    else:
        silence_s = interval_s + _LATE_S
    period_s = 3600 if silence_s >= 3 * 3600 else min(interval_s, 300)
    longest_s = MAX_HOURLY_WINDOW_S if period_s >= 3600 else MAX_WINDOW_S
    if silence_s > longest_s:
        raise ValueError(
            f"CloudWatch looks back {longest_s // 86400} days at most, which {schedule} exceeds;"
            " run daily, and return at once on days without work"
        )
    return Silence(period_s, -(-silence_s // period_s))


def read_schedules() -> dict[str, str]:
    """Return function -> its schedule, by default where it is a parameter."""
    declared = load(FUNCTIONS.read_text())
    parameters = load(TEMPLATE.read_text())["Parameters"]
    schedules = {}
    for function in list_functions("schedule", declared):
        schedule = function.declared["Schedule"]
        if isinstance(schedule, dict):
            schedule = parameters[schedule["Ref"]]["Default"]
        schedules[function.name] = schedule
    return schedules


def make_alarms() -> str:
    """Return the included file as JSON text, one alarm a line; deterministic."""
    return "{\n" + ",\n".join(_render_entries()) + "\n}\n"


def expand_template(template: str) -> str:
    """Return the text of template.yaml with the alarms, so that cfn-lint checks references to them
    too."""
    return insert_included(template, ROOT)


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
            of=watch.get("of", ""),
            over=("total", watch.get("min_errors", 0)),
            periods=watch["periods"],
            period_s=watch["period_s"],
        )
        alarms[name]["Properties"] |= _NOTIFY
    for name, options in declared["error_rates"].items():
        alarms[name] = _make_on_balancer(
            _describe(options["text"], options["runbook"]),
            "5xx",
            of="Count",
            over=("requests", _MIN_REQUESTS),
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
    over: tuple[str, int] = ("", 0),
) -> dict[str, Any]:
    """Return an alarm on a metric of API Gateway, or on its share ``of`` another one in percent,
    where ``over`` is exceeded: a number of ``requests``, or of what is counted (``total``)."""

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
        counted = requests if over[0] == "requests" else f"({total})"
        total = f"IF({counted} > {over[1]}, 100 * ({total}) / {requests}, 0)"
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
            if "of" in options["watch"]:
                watch = options["watch"]
                yield name, _make_error_share(options["text"], options["runbook"], **watch)
                continue
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
    for name, options in (declared["queries"] | declared["expressions"]).items():
        yield name, _make_of_several(**options)
    for name, options in declared["error_rates"].items():
        yield name, _make_error_rate(**options)
    yield from _make_silent(**declared["silent"])
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
        **_ACTIONS,
    }


def _make_silent(
    *, runbook: str, effects: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an alarm for each schedule on the absence of its runs. Raises ValueError unless each
    has an effect."""
    schedules = read_schedules()
    if set(schedules) != set(effects):
        raise ValueError(f"effects of alarms.yaml: {sorted(set(schedules) ^ set(effects))}")
    for name, schedule in schedules.items():
        silence = limit_silence(schedule)
        text = f"{name} has not run for {_spell(silence)}. {effects[name]}"
        alarm = _make_alarm(
            _describe(text, runbook),
            metric=("Plaza", "ran"),
            dimension=("function", {"Ref": name}),
            statistic="Sum",
            above=0,
            periods=silence.periods,
            period_s=silence.period_s,
        )
        is_absent = {
            "Threshold": 1,
            "ComparisonOperator": "LessThanThreshold",
            "TreatMissingData": "breaching",
        }
        yield f"{name}SilentAlarm", alarm | is_absent


def _spell(silence: Silence) -> str:
    minutes = silence.period_s * silence.periods // 60
    return f"{minutes // 60} hours" if minutes >= 120 else f"{minutes} minutes"


def _make_stat(
    id_: str,
    namespace: str,
    name: str,
    dimensions: Mapping[str, Any],
    period_s: int,
    statistic: str = "Sum",
) -> dict[str, Any]:
    """Return a metric for the expression of an alarm."""
    source = {
        "Namespace": namespace,
        "MetricName": name,
        "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions.items()],
    }
    stat = {"Metric": source, "Period": period_s, "Stat": statistic}
    return {"Id": id_, "MetricStat": stat, "ReturnData": False}


def _make_of_several(
    *,
    text: str,
    runbook: str,
    watch: str,
    period_s: int,
    periods: int = 1,
    above: float | None = None,
    below: float | None = None,
    metrics: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return an alarm on an expression of metrics, or on a query without ``metrics``."""
    stats = [
        _make_stat(
            id_,
            metric["namespace"],
            metric["metric"],
            {
                key: {"Ref": value["function"]} if isinstance(value, dict) else value
                for key, value in metric["dimensions"].items()
            },
            period_s,
            metric.get("statistic", "Sum"),
        )
        for id_, metric in (metrics or {}).items()
    ]
    query = {} if metrics else {"Period": period_s}
    return {
        "AlarmDescription": _describe(text, runbook),
        "Metrics": [{"Id": "watched", "Expression": watch, **query}, *stats],
        "EvaluationPeriods": periods,
        "Threshold": above if below is None else below,
        "ComparisonOperator": f"{'Greater' if below is None else 'Less'}ThanThreshold",
        "TreatMissingData": "notBreaching",
        **_NOTIFY,
    }


def _make_error_rate(
    *, text: str, runbook: str, api: str, above_percent: float, window_s: int
) -> dict[str, Any]:
    """Return an alarm on the share of 5xx in a window. It notifies by one of ``both`` only."""
    alarm = _make_error_share(
        text,
        runbook,
        metric="5xx",
        of="Count",
        api=api,
        above=above_percent,
        over=f"requests > {_MIN_REQUESTS}",
        period_s=window_s,
    )
    return {name: value for name, value in alarm.items() if name not in _NOTIFY}


def _make_error_share(
    text: str,
    runbook: str,
    *,
    metric: str,
    of: str,
    api: str,
    above: float,
    period_s: int,
    periods: int = 1,
    min_errors: int = 0,
    over: str = "",
) -> dict[str, Any]:
    """Return an alarm on the share of ``metric`` in ``of`` in percent, where ``over`` holds: by
    default more than ``min_errors``."""
    of_api = {"ApiId": {"Ref": api}}
    condition = over or f"errors > {min_errors}"
    return {
        "AlarmDescription": _describe(text, runbook),
        "Metrics": [
            {"Id": "rate", "Expression": f"IF({condition}, 100 * errors / requests, 0)"},
            _make_stat("errors", "AWS/ApiGateway", metric, of_api, period_s),
            _make_stat("requests", "AWS/ApiGateway", of, of_api, period_s),
        ],
        "EvaluationPeriods": periods,
        "Threshold": above,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
        **_NOTIFY,
    }


def _make_failures(
    function: str,
    *,
    text: str,
    runbook: str,
    above_percent: float,
    min_failures: int,
    window_s: int,
) -> dict[str, Any]:
    """Return an alarm on the share of failures among the requests of the newest version of a
    function: failures that Lambda sees, and its own 5xx. Without requests it is not raised.

    A deployment moves its traffic back when it is raised, so it may not refer to the API, which
    refers to the deployed version.
    """
    version = {"Fn::GetAtt": [f"{function}.Version", "Version"]}
    of_version = {
        "FunctionName": {"Ref": function},
        "Resource": {"Fn::Sub": f"${{{function}}}:live"},
        "ExecutedVersion": version,
    }
    own = {"function": {"Ref": function}, "version": version}
    failures = "(FILL(errors, 0) + FILL(own, 0))"
    share = f"IF({failures} > {min_failures}, 100 * {failures} / requests, 0)"
    return {
        "AlarmDescription": _describe(f"The newest version of {function} fails. {text}", runbook),
        "Metrics": [
            {"Id": "share", "Expression": share},
            _make_stat("errors", "AWS/Lambda", "Errors", of_version, window_s),
            _make_stat("own", "Plaza", "server_errors", own, window_s),
            _make_stat("requests", "AWS/Lambda", "Invocations", of_version, window_s),
        ],
        "EvaluationPeriods": 1,
        "Threshold": above_percent,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
        **_NOTIFY,
    }


def _make_composite(*, text: str, runbook: str, alarms: list[str]) -> dict[str, Any]:
    """Return an alarm that is raised while all of ``alarms`` are."""
    return {
        "Type": "AWS::CloudWatch::CompositeAlarm",
        "Condition": "HasAlarmTopic",
        "Properties": {
            "AlarmDescription": _describe(text, runbook),
            "AlarmRule": {"Fn::Sub": " AND ".join(f'ALARM("${{{name}}}")' for name in alarms)},
            **_NOTIFY,
        },
    }
