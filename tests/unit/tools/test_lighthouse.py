"""Lighthouse is installed apart from what tests and builds need, and explains its scores."""

from __future__ import annotations

import json
import re

import pytest

from cli.paths import ROOT
from tools.__main__ import build_parser
from tools.lighthouse import run


def test_tests_and_builds_install_all_workspaces_but_lighthouse() -> None:
    workspaces = json.loads((ROOT / "package.json").read_text())["workspaces"]
    assert sorted(workspaces) == sorted(run.WORKSPACES)
    names = {json.loads((ROOT / path / "package.json").read_text())["name"] for path in workspaces}
    makefile = (ROOT / "Makefile").read_text()
    [line] = re.findall(r"^WORKSPACES := (.+)$", makefile, re.MULTILINE)
    assert set(re.findall(r"--workspace (\S+)", line)) == names - {"plaza-lighthouse"}
    assert "npm ci $(WORKSPACES)" in makefile


def test_everything_is_measured_where_nothing_is_named() -> None:
    """On every Python: argparse of 3.13.0 compares a default with the choices."""
    assert build_parser().parse_args(["lighthouse"]).what == []


def test_scores_under_the_minimum_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    scores = dict.fromkeys(run.CATEGORIES, 100)
    low = {**scores, "performance": 80}
    run.show(
        [
            {"name": "site: a", "version": "1", "scores": scores, "failed": ["never printed"]},
            {"name": "site: b", "version": "1", "scores": low, "failed": ["too slow"]},
        ]
    )
    printed = capsys.readouterr().out
    assert "80 !" in printed
    assert "too slow" in printed
    assert "never printed" not in printed
