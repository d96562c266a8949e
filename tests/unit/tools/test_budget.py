"""What a change adds to the limits of AWS."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from cli.paths import ROOT, CommandError
from tools import budget
from tools.budget import Size


def test_all_templates_are_counted_with_what_they_include(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "measure_template", lambda file: Size(1, 2))
    templates = budget.measure_templates(ROOT)
    assert templates["template.yaml"] == Size(1, 2)
    assert set(templates) - {"template.yaml"} == {
        f"deploy/{file.name}" for file in (ROOT / "deploy").glob("*.yaml")
    }


def test_resources_of_an_include_count() -> None:
    size = budget.measure_template(ROOT / "deploy" / "balancer.yaml")
    assert size.resources > 60


def test_the_printed_table_has_what_was_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(budget, "measure_commit", lambda commit: {"template.yaml": Size(330, 1000)})
    monkeypatch.setattr(
        budget,
        "measure_templates",
        lambda root: {"template.yaml": Size(334, 3000), "deploy/new.yaml": Size(7, 1)},
    )
    monkeypatch.setattr(budget, "LAYER", tmp_path)
    (tmp_path / "module.py").write_bytes(b"x" * 2_500_000)
    budget.main(argparse.Namespace(since="v1", cold=False))
    printed = capsys.readouterr().out
    for text in ("+4", "+7", "+2.0", "2.5 MB of 22", "resources at v1"):
        assert text in printed


def test_an_unknown_commit_is_an_error() -> None:
    with pytest.raises(CommandError, match="nothing-like-it has no templates"):
        budget.measure_commit("nothing-like-it")
