"""``generate --check`` names the files that a generator would change, and changes none."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from tools import generate


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two generated files, one of which is out of date."""
    (tmp_path / "current.json").write_text("1")
    (tmp_path / "stale.json").write_text("1")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "_WRITTEN", ("*.json",))

    def write() -> None:
        (tmp_path / "current.json").write_text("1")
        (tmp_path / "stale.json").write_text("2")
        (tmp_path / "missing.json").write_text("3")

    monkeypatch.setattr(generate, "_write", write)
    return tmp_path


def test_check_names_stale_and_missing_files_and_restores_them(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main(Namespace(check=True)) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in printed] == ["missing.json", "stale.json"]
    assert {file.name: file.read_text() for file in root.iterdir()} == {
        "current.json": "1",
        "stale.json": "1",
    }


def test_generate_writes_and_a_check_after_it_passes(root: Path) -> None:
    assert generate.main(Namespace(check=False)) == 0
    assert (root / "stale.json").read_text() == "2"
    assert generate.main(Namespace(check=True)) == 0
