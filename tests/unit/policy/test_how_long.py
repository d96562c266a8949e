"""docs/how-long.md has the values of the code and of the template."""

from __future__ import annotations

import importlib
import re

import pytest

from cli.paths import ROOT
from tests.unit.policy.modules import PLAZA
from tests.unit.policy.template import TEMPLATE

PAGE = (ROOT / "docs" / "how-long.md").read_text()
ROW = re.compile(r"^\| ([^|]+) \| ([\d.]+) (\w+) \| `([\w.]+)` \|", re.MULTILINE)
SECONDS = {"s": 1.0, "min": 60, "h": 3_600, "day": 86_400, "days": 86_400}
IN_WORDS = {"seconds": "s", "minutes": "min", "hours": "h", "days": "days"}
UNITS = {"_S": 1.0, "_MS": 1e-3, "_US": 1e-6}


def seconds_of(name: str) -> float:
    """Return the seconds of a variable's or a parameter's default, or of a constant."""
    if name.startswith("PLAZA_"):
        text = (PLAZA / "infra" / "runtime" / "settings.py").read_text()
        [default] = re.findall(rf'"{name}", ([\d.]+)', text)
        return float(default)
    if "." not in name:
        parameter = TEMPLATE["Parameters"][name]
        return float(parameter["Default"]) * SECONDS[IN_WORDS[parameter["Description"].split()[0]]]
    module, _, constant = name.rpartition(".")
    value = getattr(importlib.import_module(f"plaza.{module}"), constant)
    return float(value) * UNITS[constant[constant.rindex("_") :]]


@pytest.mark.parametrize(("number", "unit", "name"), [row[1:] for row in ROW.findall(PAGE)])
def test_a_duration_has_the_value_of_its_source(number: str, unit: str, name: str) -> None:
    assert float(number) * SECONDS[unit] == pytest.approx(seconds_of(name))


def test_the_page_is_short() -> None:
    assert len(ROW.findall(PAGE)) == 25
