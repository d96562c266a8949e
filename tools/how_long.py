"""``python -m tools how-long``: fill in the durations of docs/how-long.md.

A row of the page names what sets a duration: a constant (``reactions.sweep.MAX_RUN_S``, or of a
script), a setting or a parameter. The command writes its value, and the name as it is now. Tables
between markers are written as a whole. A public constant that is not on the page is an error.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import plaza
from cli.paths import ROOT, CommandError
from plaza.infra.derived.cache import Policy
from plaza.infra.http.limits import Window
from plaza.infra.queues.queue import declared
from plaza.infra.redis.token_bucket import TokenBucket
from tools.template.text import load

PAGE = ROOT / "docs" / "how-long.md"
PLAZA = Path(plaza.__path__[0])
SECONDS = {"S": 1, "MS": 1e-3, "US": 1e-6, "MIN": 60, "MINUTES": 60, "HOURS": 3_600, "DAYS": 86_400}
SECONDS |= {"seconds": 1, "hours": 3_600, "days": 86_400}
DURATION = re.compile(r"(?!.*_PER_)[A-Z_]+_(S|MS|US|MIN|MINUTES|HOURS|DAYS)")
# Points in time, and a unit.
NO_DURATIONS = re.compile(r".*_(VERSION|CLOSES|OPEN|FLOOR|LIMIT|CREATED)_US|HOUR_US|START_S")
STATEMENT = "PLAZA_MYSQL_STATEMENT_TIMEOUT_S"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]*?) ?\| `([\w.-]+)` \| ([^|]+) \|$", re.MULTILINE)


class Unknown(CommandError):
    """The page and the code disagree; the text says how."""


def main(_: argparse.Namespace) -> None:
    """Write the page. Raises Unknown."""
    PAGE.write_text(render(PAGE.read_text()))


def render(page: str) -> str:
    """Return the page with the durations of today. Raises Unknown."""
    for name, rows in {
        "queues": render_queues(),
        "functions": render_functions(),
        "runs": render_runs(),
        "caches": render_caches(),
        "limits": render_limits(),
        "budgets": render_budgets(),
    }.items():
        mark = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, _, rest = page.partition(mark[0])
        page = "\n".join([before + mark[0], *rows, mark[1] + rest.partition(mark[1])[2]])
    page = ROW.sub(fill_in, page)
    listed = [name for _, _, name, _ in ROW.findall(page)]
    if twice := {name for name in listed if listed.count(name) > 1}:
        raise Unknown(f"{', '.join(sorted(twice))} has two rows: one is of a constant that is gone")
    public = {name for name in constants() if not name.rpartition(".")[2].startswith("_")}
    runs = {name for name in public if name.endswith(".MAX_RUN_S")}
    if missing := {*public, *script_constants(), *parameters()} - runs - set(listed):
        raise Unknown(f"no row has {', '.join(sorted(missing))}")
    return page


def fill_in(row: re.Match[str]) -> str:
    """Return a row with its duration. Raises Unknown."""
    what, _, name, then = row.groups()
    name, duration = find(name)
    return f"| {what} | {duration} | `{name}` | {then} |"


def find(name: str) -> tuple[str, str]:
    """Return the present name of what sets a duration, and its value. Raises Unknown."""
    last = name.rpartition(".")[2]
    if name in parameters():
        return name, parameters()[name]
    if name in constants():
        return name, show(constants()[name])
    if name.startswith("PLAZA_"):
        return name, show(read_setting(name))
    if ".lua." in name and name in script_constants():
        return name, show(script_constants()[name])
    moved = [key for key in constants() if key.endswith(f".{last}")]
    for part in name.split(".")[:-1]:  # its context, and its module if that has not changed
        moved = [key for key in moved if part in key.split(".")] or moved
    if len(moved) != 1:
        raise Unknown(f"{name} does not exist")
    return moved[0], show(constants()[moved[0]])


def show(seconds: object) -> str:
    """Return ``90 s`` for 90. A mapping is shown by its keys."""
    if isinstance(seconds, Mapping):
        return ", ".join(
            f"{str(getattr(key, 'value', key)).lower()} {show(value)}"
            for key, value in seconds.items()
        )
    if not isinstance(seconds, int | float):
        raise TypeError(f"{seconds!r} is no duration")
    for unit, size in {"days": 86_400, "h": 3_600, "min": 60}.items():
        if seconds >= size and seconds % size == 0:
            count = f"{seconds / size:g}"
            return "1 day" if (count, unit) == ("1", "days") else f"{count} {unit}"
    return f"{seconds:g} s" if seconds >= 0.1 else f"{seconds * 1e3:g} ms"


# ---------------------------------------------------------------- where durations are


@cache
def modules() -> Mapping[str, ModuleType]:
    """Return name -> module of all of Plaza, the name without ``plaza.``."""
    files = sorted(file for file in PLAZA.rglob("*.py") if file.name != "__init__.py")
    names = [".".join(file.relative_to(PLAZA).with_suffix("").parts) for file in files]
    return {name: importlib.import_module(f"plaza.{name}") for name in names}


@cache
def assigned(module: ModuleType) -> list[str]:
    """Return the names that a module assigns, not those that it imports."""
    body = ast.parse(Path(str(module.__file__)).read_text()).body
    targets = [target for node in body for target in getattr(node, "targets", [])]
    targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def constants() -> Mapping[str, Any]:
    """Return module.NAME -> seconds of each constant that is a duration by its name."""
    durations: dict[str, Any] = {}
    for name, module in modules().items():
        for constant in assigned(module):
            if (unit := DURATION.fullmatch(constant)) and not NO_DURATIONS.fullmatch(constant):
                value, size = getattr(module, constant), SECONDS[unit[1]]
                if isinstance(value, int | float):
                    durations[f"{name}.{constant}"] = value * size
                elif isinstance(value, dict):
                    durations[f"{name}.{constant}"] = {k: v * size for k, v in value.items()}
    return durations


@cache
def script_constants() -> Mapping[str, float]:
    """Return file.lua.NAME -> seconds."""
    pattern = re.compile(r"^ *local ([A-Z_]+_(S|MS|US)) = (\d+)", re.MULTILINE)
    return {
        f"{file.name}.{name}": int(value) * SECONDS[unit]
        for file in PLAZA.rglob("*.lua")
        for name, unit, value in pattern.findall(file.read_text())
    }


def read_setting(name: str) -> float:
    """Return the default of a setting that no parameter sets, seconds. Raises Unknown."""
    pattern = re.compile(rf"\b{name}\b\W+(\d[\d_.]*)")
    for file in PLAZA.rglob("*.py"):
        if match := pattern.search(file.read_text()):
            return float(match[1])
    raise Unknown(f"{name} has no default")


@cache
def template() -> dict[str, Any]:
    """Return template.yaml; of a short tag just what it is given."""
    resources: dict[str, Any] = without_tags(load((ROOT / "template.yaml").read_text()))
    return resources


def without_tags(value: Any) -> Any:
    """Return data in which ``{"Ref": x}`` and ``{"Fn::...": x}`` are ``x``."""
    match value:
        case dict() if len(value) == 1 and (tag := next(iter(value))).startswith(("Ref", "Fn::")):
            return without_tags(value[tag])
        case dict():
            return {key: without_tags(part) for key, part in value.items()}
        case list():
            return [without_tags(part) for part in value]
    return value


@cache
def parameters() -> Mapping[str, str]:
    """Return parameter -> its default, shown as a duration."""
    defaults = {}
    for name, declared_ in template()["Parameters"].items():
        unit = SECONDS.get(declared_.get("Description", "").partition(" ")[0])
        if unit and "Default" in declared_:
            defaults[name] = show(declared_["Default"] * unit)
    return defaults


# ---------------------------------------------------------------- whole tables


def render_queues() -> Iterator[str]:
    """Yield a row for each queue."""
    retention = {
        str(resource["Properties"]["QueueName"]).partition("-")[2]: resource["Properties"]
        for resource in template()["Resources"].values()
        if resource.get("Type") == "AWS::SQS::Queue"
    }
    heads = "a killed consumer's batch", "each attempt after", "the last attempt", "waits at most"
    yield f"| queue | {' | '.join(heads)} | is kept |"
    yield "|---|---|---|---|---|---|"
    modules()
    for name in sorted(declared().keys() & retention.keys()):  # a test may declare another one
        queue = declared()[name]
        policy = queue.retry
        delays = [
            policy.back_off_s[min(n, len(policy.back_off_s) - 1)]
            for n in range(policy.max_attempts - 1)
        ]
        kept = retention[name]["MessageRetentionPeriod"]
        cells = [
            show(queue.visibility_s),
            ", ".join(map(str, delays)) + " s",
            f"{show(sum(delays))} after the first",
        ]
        yield f"| {' | '.join([name, *cells, show(policy.max_wait_s), show(kept)])} |"


def render_functions() -> Iterator[str]:
    """Yield a row for the functions that run for the same reason and as long."""
    default = template()["Globals"]["Function"]
    others = {"api": "a request", "queue": "a batch"}
    rows = defaultdict(list)
    for name, resource in template()["Resources"].items():
        if resource.get("Type") != "AWS::Serverless::Function":
            continue
        properties = default | resource["Properties"]
        variables = properties.get("Environment", {}).get("Variables", {})
        variables = default.get("Environment", {}).get("Variables", {}) | variables
        kind = str(properties["CodeUri"]).partition("functions/")[2].partition("/")[0]
        runs = ", ".join(parameter_or(text) for text in schedules_of(properties))
        statement_s = variables.get(STATEMENT) or read_setting(STATEMENT)
        cells = (
            runs or others.get(kind, "a deploy, an operator"),
            properties["Timeout"],
            statement_s,
        )
        rows[cells].append(name)
    yield "| functions | run for | Lambda ends them after | MySQL a statement after |"
    yield "|---|---|---|---|"
    for (runs, timeout_s, statement_s), names in sorted(rows.items()):
        is_api = runs == others["api"] and len(names) > 2
        listed = "the functions of the API" if is_api else ", ".join(sorted(names))
        yield f"| {listed} | {runs} | {show(timeout_s)} | {show(statement_s)} |"


def schedules_of(value: Any) -> Iterable[str]:
    """Yield the expressions of all schedules in a part of the template."""
    if isinstance(value, dict):
        if "ScheduleExpression" in value:
            yield value["ScheduleExpression"]
        for part in value.values():
            yield from schedules_of(part)


def parameter_or(text: str) -> str:
    """Return ``rate(1 hour)`` for it, or for a parameter with this default."""
    return str(template()["Parameters"].get(text, {}).get("Default", text))


def render_runs() -> Iterator[str]:
    """Yield a row for each module whose work stops by itself."""
    yield "| run | stops after |"
    yield "|---|---|"
    for name, value in constants().items():
        module, _, constant = name.rpartition(".")
        if constant.lstrip("_") == "MAX_RUN_S":
            yield f"| `{module}` | {show(value)} |"


def render_caches() -> Iterator[str]:
    """Yield a row for each policy of cached values."""
    yield "| policy | is cached for | is fresh for | absence is cached for |"
    yield "|---|---|---|---|"
    for name, policy in instances(Policy):
        fresh_s = policy.ttl_s if policy.fresh_s is None else policy.fresh_s
        cells = map(show, (policy.ttl_s, fresh_s, policy.negative_ttl_s))
        yield f"| `{name}` | {' | '.join(cells)} |"


def render_limits() -> Iterator[str]:
    """Yield a row for each limit of attempts in a time."""
    yield "| limit | attempts |"
    yield "|---|---|"
    for name, windows in instances(tuple):
        if windows and all(isinstance(window, Window) for window in windows):
            texts = [f"{window.max_attempts} in {show(window.duration_s)}" for window in windows]
            yield f"| `{name}` | {', '.join(texts)} |"


def render_budgets() -> Iterator[str]:
    """Yield a row for each budget."""
    yield "| budget | a second | at once |"
    yield "|---|---|---|"
    for name, bucket in instances(TokenBucket):
        yield f"| `{name}` | {bucket._rate_per_s:g} | {bucket._burst} |"


def instances(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield (module.NAME, object) of the objects of a type that modules define."""
    seen = set()
    for name, module in modules().items():
        for attribute, value in vars(module).items():
            if isinstance(value, kind) and id(value) not in seen and attribute in assigned(module):
                seen.add(id(value))
                yield f"{name}.{attribute}", value
