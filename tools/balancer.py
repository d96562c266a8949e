"""deploy/balancer-rules.json: what the load balancer has for each function, and its alarms.

``make generate`` generates it from the routes of the functions and from alarms.yaml, and
deploy/balancer.yaml includes it. ``python -m tools balancer --expand`` prints that template with
its include inserted.

Rules are evaluated in order of their priority, and a request pays for those beyond the first ten.
So functions with many requests come first. A function whose patterns fit paths of another one comes
after it (``*`` also fits ``/``): ``make_rules`` raises ValueError if a route is sent elsewhere.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cli.includes import insert_included
from cli.paths import ROOT
from tools.alarms import make_balancer_alarms
from tools.template.routes import DEFAULT, read_operations

RULES = ROOT / "deploy" / "balancer-rules.json"
SOURCE = ROOT / "deploy" / "balancer.yaml"
ORDER = (
    "ReactionsApi",
    "TotalsApi",
    "FeedApi",
    "RecommendationsApi",
    "FlashSalesApi",
    "FollowsApi",
    "ContentApi",
    "ShopsApi",
    "NotificationsApi",
    "AccountsApi",
    "UsersApi",
    "CheckinsApi",
    "AuthApi",
    "ModerationApi",
    "ReconciliationApi",
    "OperationsApi",
)
MAX_PATTERNS = 3  # of a condition; five in a rule
MAX_WILDCARDS = 5  # of a rule
PRIORITIES = 10  # of a function, so that a new path changes the rules of one function only
FREE_RULES = 10  # evaluated in a request


class Rule(NamedTuple):
    """A rule of the listener."""

    function: str
    number: int
    priority: int
    patterns: tuple[str, ...]


def main(args: argparse.Namespace) -> None:
    if args.expand:
        sys.stdout.write(expand_template())
    else:
        RULES.write_text(make_file())


def read_routes() -> dict[str, list[str]]:
    """Return function -> paths of its routes."""
    routes: dict[str, set[str]] = {}
    for operation in read_operations():
        routes.setdefault(operation.function, set()).add(operation.path)
    return {name: sorted(paths) for name, paths in sorted(routes.items())}


def make_rules(routes: Mapping[str, Sequence[str]]) -> list[Rule]:
    """Return the rules in order. Raises ValueError if one takes requests of another function."""
    if {*ORDER, DEFAULT} != set(routes):
        raise ValueError(f"ORDER differs from the functions: {set(routes) ^ {*ORDER, DEFAULT}}")
    rules = [
        Rule(function, number, PRIORITIES * position + number, patterns)
        for position, function in enumerate(ORDER, 1)
        for number, patterns in enumerate(_batch(routes[function]))
    ]
    for function, paths in routes.items():
        for path in paths:
            if (taken := find_function(rules, re.sub(r"\{\w+\}", "7", path))) != function:
                raise ValueError(f"{path} is a path of {function}, and sent to {taken}")
    return rules


def find_function(rules: Sequence[Rule], path: str) -> str:
    """Return the function that gets the requests to a path."""
    functions = (r.function for r in rules if any(_fits(pattern, path) for pattern in r.patterns))
    return next(functions, DEFAULT)


def count_evaluated(rules: Sequence[Rule], path: str) -> int:
    """Return how many rules a request to a path is compared with."""
    fitting = (n for n, rule in enumerate(rules, 1) if any(_fits(p, path) for p in rule.patterns))
    return next(fitting, len(rules))


def make_resources() -> dict[str, Any]:
    """Return the included resources; deterministic."""
    routes = read_routes()
    resources: dict[str, Any] = {}
    for position, function in enumerate(routes):
        resources |= _make_target(function, position)
    for rule in make_rules(routes):
        resources[f"{_stem(rule.function)}Rule{rule.number}"] = _make_rule(rule)
    return resources | make_balancer_alarms()


def render_entries() -> Iterator[str]:
    """Yield the lines of the included file, one resource each."""
    for name, resource in make_resources().items():
        yield f"  {json.dumps(name)}: {json.dumps(resource)}"


def make_file() -> str:
    """Return the included file as JSON text."""
    return "{\n" + ",\n".join(render_entries()) + "\n}\n"


def expand_template() -> str:
    """Return deploy/balancer.yaml with its include inserted, so that linters check all of it."""
    return insert_included(SOURCE.read_text(), SOURCE.parent)


def _batch(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    patterns = sorted(_widen([re.sub(r"\{\w+\}", "*", path) for path in paths]))
    wide = [p for p in patterns if not any(_fits(q, p) for q in patterns if q != p)]
    batch: list[str] = []
    for pattern in wide:
        if len(batch) == MAX_PATTERNS or "".join([*batch, pattern]).count("*") > MAX_WILDCARDS:
            yield tuple(batch)
            batch = []
        batch.append(pattern)
    if batch:
        yield tuple(batch)


def _widen(patterns: Sequence[str]) -> set[str]:
    """Replace three or more patterns that differ before an id only by one: ``/*/*/likers``."""
    wider = {pattern: re.sub(r"/[a-z-]+/\*(?=/)", "/*/*", pattern, count=1) for pattern in patterns}
    counts = Counter(wider.values())
    return {wide if counts[wide] > 2 else pattern for pattern, wide in wider.items()}


def _fits(pattern: str, path: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), path) is not None


def _stem(function: str) -> str:
    return function.removesuffix("Api")


def _make_target(function: str, position: int) -> dict[str, Any]:
    """Return a target group, and the permission to invoke its function.

    The group can be created only after the permission, which names it, so it has a name.
    """
    stem = _stem(function)
    name = f"plaza-${{Environment}}-{stem[:5].lower()}"  # at most 32 characters
    alias = {
        "Fn::Sub": [
            "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${Name}:live",
            {"Name": {"Fn::Select": [position, {"Ref": "ApiFunctions"}]}},
        ]
    }
    groups = "arn:${AWS::Partition}:elasticloadbalancing:${AWS::Region}:${AWS::AccountId}"
    permission = {
        "Action": "lambda:InvokeFunction",
        "FunctionName": alias,
        "Principal": "elasticloadbalancing.amazonaws.com",
        "SourceArn": {"Fn::Sub": f"{groups}:targetgroup/{name}/*"},
    }
    group = {
        "Name": {"Fn::Sub": name},
        "TargetType": "lambda",
        "HealthCheckEnabled": False,  # it would invoke each function, and Lambda replaces processes
        "TargetGroupAttributes": [{"Key": "lambda.multi_value_headers.enabled", "Value": "true"}],
        "Targets": [{"Id": alias}],
    }
    return {
        f"{stem}Permission": {"Type": "AWS::Lambda::Permission", "Properties": permission},
        f"{stem}Targets": {
            "Type": "AWS::ElasticLoadBalancingV2::TargetGroup",
            "DependsOn": f"{stem}Permission",
            "Properties": group,
        },
    }


def _make_rule(rule: Rule) -> dict[str, Any]:
    condition = {"Field": "path-pattern", "PathPatternConfig": {"Values": list(rule.patterns)}}
    targets = {"Ref": f"{_stem(rule.function)}Targets"}
    return {
        "Type": "AWS::ElasticLoadBalancingV2::ListenerRule",
        "Properties": {
            "ListenerArn": {"Ref": "Listener"},
            "Priority": rule.priority,
            "Conditions": [condition],
            "Actions": [{"Type": "forward", "TargetGroupArn": targets}],
        },
    }
