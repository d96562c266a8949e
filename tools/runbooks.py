"""The index of docs/runbooks, and docs/alarms.md: what to look at first, and what has an alarm.

``python -m tools alarms`` writes them and alarms.json, from alarms.yaml and the alarms of
deploy/data.yaml and canary.yaml.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import yaml

from cli.paths import ALARMS, ROOT, TEMPLATE
from tools.alarms import DECLARED, RUNBOOKS, expand_template, make_alarms, read_schedules
from tools.template.text import load

INDEX = ROOT / RUNBOOKS / "README.md"
COVERAGE = ROOT / "docs" / "alarms.md"
_STACKS = (ROOT / "deploy" / "data.yaml", ROOT / "deploy" / "canary.yaml")
_TABLE = r"(?<=<!-- {0}: begin -->\n).*?(?=<!-- {0}: end -->)"
_RUNBOOK = re.compile(rf" Runbook: {RUNBOOKS}/([a-z-]+)\.md$")


def main(args: argparse.Namespace) -> None:
    if args.expand:
        sys.stdout.write(expand_template(TEMPLATE.read_text()))
    else:
        ALARMS.write_text(make_alarms())
        INDEX.write_text(write_index(INDEX.read_text()))
        COVERAGE.write_text(write_coverage(COVERAGE.read_text()))


def write_index(page: str) -> str:
    """Return the page with its table as the alarms are. Raises ValueError."""
    return _replace_table(page, "alarms", make_table())


def write_coverage(page: str) -> str:
    """Return the page with its tables as the alarms are. Raises ValueError."""
    declared = yaml.safe_load(DECLARED.read_text())
    alarms, used = read_alarms(), set[str]()
    rows = []
    for row in [*declared["coverage"], *_cover_queues(declared), *_cover_schedules(declared)]:
        named = [name for pattern in row.get("alarms", []) for name in _expand(pattern, alarms)]
        used |= set(named)
        seen_by = [f"[{name}](runbooks/{alarms[name]}.md)" for name in dict.fromkeys(named)]
        if "notice" in row:
            seen_by.append(row["notice"])
        if not seen_by:
            raise ValueError(f"no alarm sees: {row['part']}, {row['failure']}")
        rows.append(f"| {row['part']} | {row['failure']} | {', '.join(seen_by)} |\n")
    if unused := set(alarms) - used:
        raise ValueError(f"coverage of alarms.yaml lacks {sorted(unused)}")
    head = "| part | failure | seen by |\n|---|---|---|\n"
    page = _replace_table(page, "coverage", head + "".join(rows))
    without = sorted(declared["without_alarm"].items())
    text = "| metric | why it has no alarm of its own |\n|---|---|\n"
    text += "".join(f"| `{name}` | {reason} |\n" for name, reason in without)
    return _replace_table(page, "without", text)


def _cover_queues(declared: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield two rows for each queue."""
    for queue in declared["queues"]:
        name = queue.removesuffix("Queue")
        late = "its consumer is behind or does not run"
        yield {"part": queue, "failure": late, "alarms": [f"{name}AgeAlarm"]}
        dead = "a message failed in all attempts"
        yield {"part": queue, "failure": dead, "alarms": [f"{name}DlqAlarm"]}


def _cover_schedules(declared: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield two rows for each schedule."""
    errors = declared["errors"].items()
    for name in read_schedules():
        on_errors = [alarm for alarm, options in errors if options["watch"]["function"] == name]
        yield {"part": name, "failure": "it fails", "alarms": on_errors}
        silent = "it does not run: disabled, no role, cut off by its timeout"
        yield {"part": name, "failure": silent, "alarms": [f"{name}SilentAlarm"]}


def _expand(pattern: str, alarms: Iterable[str]) -> list[str]:
    """Return the alarms that a pattern names. Raises ValueError if there is none."""
    if not (named := [name for name in sorted(alarms) if fnmatchcase(name, pattern)]):
        raise ValueError(f"coverage of alarms.yaml names {pattern}, which is no alarm")
    return named


def _replace_table(page: str, name: str, text: str) -> str:
    table = re.compile(_TABLE.format(name), re.DOTALL)
    if len(table.findall(page)) != 1:
        raise ValueError(f"the page must have the table {name} once")
    return table.sub(lambda _: f"\n{text}\n", page)


def make_table() -> str:
    """Return a row for each runbook. Raises ValueError for one without a first check."""
    alarms: dict[str, list[str]] = {}
    for name, runbook in sorted(read_alarms().items()):
        alarms.setdefault(runbook, []).append(name)
    checks: dict[str, str] = yaml.safe_load(DECLARED.read_text())["first_checks"]
    if set(checks) != set(alarms):
        raise ValueError(f"first_checks of alarms.yaml: {sorted(set(checks) ^ set(alarms))}")
    rows = (
        f"| [{runbook}]({runbook}.md) | {checks[runbook]} | {', '.join(names)} |\n"
        for runbook, names in sorted(alarms.items())
    )
    return "| runbook | look first at | alarms |\n|---|---|---|\n" + "".join(rows)


def read_alarms() -> dict[str, str]:
    """Return alarm -> runbook, which its description ends with. Raises ValueError."""
    resources: dict[str, Any] = json.loads(make_alarms())
    for stack in _STACKS:
        resources |= load(stack.read_text())["Resources"]
    runbooks = {}
    for name, resource in resources.items():
        if resource["Type"] in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"):
            match = _RUNBOOK.search(resource["Properties"]["AlarmDescription"])
            if match is None:
                raise ValueError(f"the description of {name} does not end with its runbook")
            runbooks[name] = match[1]
    return runbooks
