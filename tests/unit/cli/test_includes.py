"""Templates with the file that they include."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.includes import insert_included
from cli.paths import TEMPLATE
from tools.template.text import load

WRITTEN = """\
Resources:
  First: { Type: A }
  Fn::Transform:
    Name: AWS::Include
    Parameters: { Location: more.json }
  Last: { Type: Z }
"""
BUILT = """\
Resources:
  First:
    Type: A
  Fn::Transform:
    Name: AWS::Include
    Parameters:
      Location: ../more.json
    Metadata:
      SamResourceId: Fn::Transform
  Last:
    Type: Z
"""


@pytest.mark.parametrize(("template", "folder"), [(WRITTEN, "."), (BUILT, "build")])
def test_the_resources_of_the_file_take_the_place_of_the_include(
    template: str, folder: str, tmp_path: Path
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "more.json").write_text('{\n  "B": {"Type": "B"},\n  "C": {"Type": "C"}\n}\n')
    expanded = load(insert_included(template, tmp_path / folder))["Resources"]
    assert {name: resource["Type"] for name, resource in expanded.items()} == {
        "First": "A",
        "B": "B",
        "C": "C",
        "Last": "Z",
    }


def test_a_template_without_an_include_stays_as_it_is(tmp_path: Path) -> None:
    text = "Resources:\n  First: { Type: A }\n"
    assert insert_included(text, tmp_path) == text
    expanded = insert_included(TEMPLATE.read_text(), TEMPLATE.parent)
    assert expanded != TEMPLATE.read_text()
    assert insert_included(expanded, TEMPLATE.parent) == expanded
