"""The index of docs/runbooks: for each runbook its alarms, and what to look at first.

``make alarms`` writes it, from alarms.yaml and the alarms of deploy/data.yaml.
"""

import json
import re
from typing import Any

import yaml

from cli.paths import ROOT
from tools.alarms import DECLARED, RUNBOOKS, make_alarms
from tools.template.text import load

INDEX = ROOT / RUNBOOKS / "README.md"
_STORES = ROOT / "deploy" / "data.yaml"
_TABLE = re.compile(r"(?<=<!-- alarms: begin -->\n).*?(?=<!-- alarms: end -->)", re.DOTALL)
_RUNBOOK = re.compile(rf" Runbook: {RUNBOOKS}/([a-z-]+)\.md$")


def write_index(page: str) -> str:
    """Return the page with its table as the alarms are. Raises ValueError."""
    if len(_TABLE.findall(page)) != 1:
        raise ValueError(f"{INDEX.name} must have the table of alarms once")
    return _TABLE.sub(lambda _: f"\n{make_table()}\n", page)


def make_table() -> str:
    """Return a row for each runbook. Raises ValueError for one without a first check."""
    alarms: dict[str, list[str]] = {}
    for name, runbook in sorted(_read_alarms().items()):
        alarms.setdefault(runbook, []).append(name)
    checks: dict[str, str] = yaml.safe_load(DECLARED.read_text())["first_checks"]
    if set(checks) != set(alarms):
        raise ValueError(f"first_checks of alarms.yaml: {sorted(set(checks) ^ set(alarms))}")
    rows = (
        f"| [{runbook}]({runbook}.md) | {checks[runbook]} | {', '.join(names)} |\n"
        for runbook, names in sorted(alarms.items())
    )
    return "| runbook | look first at | alarms |\n|---|---|---|\n" + "".join(rows)


def _read_alarms() -> dict[str, str]:
    """Return alarm -> runbook, which its description ends with. Raises ValueError."""
    resources: dict[str, Any] = json.loads(make_alarms())
    resources |= load(_STORES.read_text())["Resources"]
    runbooks = {}
    for name, resource in resources.items():
        if resource["Type"] in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"):
            match = _RUNBOOK.search(resource["Properties"]["AlarmDescription"])
            if match is None:
                raise ValueError(f"the description of {name} does not end with its runbook")
            runbooks[name] = match[1]
    return runbooks
