"""The installation of packages: what is on the screen meanwhile, and without an index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.paths import ROOT

PIP = """
case "$PIP_DOES" in
fails) echo 'ERROR: No matching distribution found for one==1 (from versions: none)'; exit 1 ;;
breaks) echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES'; exit 1 ;;
waits)
  echo 'Collecting one==1'
  until [ -e "$PIP_UNTIL" ]; do sleep 0.05; done ;;
hangs)
  echo 'WARNING: Retrying (Retry(total=4)) after connection broken'
  until [ -e "$PIP_UNTIL" ]; do sleep 0.05; done ;;
esac
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return a command that makes an environment by a Python whose pip follows `PIP_DOES`."""
    python = tmp_path / "python"
    python.write_text(
        "#!/usr/bin/env bash\n"
        f'if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit; fi\n'
        f'if [ "$1 $2" = "-m pip" ]; then{PIP}exit 0; fi\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("one==1 \\\n    --hash=sha256:0\ntwo==2 \\\n    --hash=sha256:1\n")
    return [str(ROOT / "tools" / "make_environment"), str(tmp_path / "venv"), str(requirements)]


def environment(tmp_path: Path, does: str) -> dict[str, str]:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return os.environ | {
        "PYTHON": str(tmp_path / "python"),
        "PYTHON_VERSION": version,
        "PIP_DOES": does,
        "PIP_UNTIL": str(tmp_path / "until"),
        "PLAZA_REPORT_S": "0.05",
    }


def test_it_prints_what_it_installs_and_how_long_it_took(
    tmp_path: Path, command: list[str]
) -> None:
    completed = subprocess.run(
        command, env=environment(tmp_path, "works"), capture_output=True, text=True, cwd=ROOT
    )
    assert completed.returncode == 0, completed.stderr
    first, *_, last = completed.stdout.splitlines()
    assert first.endswith(f"installing 2 packages of {tmp_path}/requirements.txt")
    assert last.startswith(f"{tmp_path}/venv: ready after ")
    assert (tmp_path / "venv" / ".ready").exists()


@pytest.mark.parametrize(
    ("does", "line"),
    [
        ("waits", "s, 1 of 2 packages found"),
        ("hangs", "s, the package index does not answer; pip asks again"),
    ],
)
def test_it_prints_its_progress(tmp_path: Path, command: list[str], does: str, line: str) -> None:
    with subprocess.Popen(
        command, env=environment(tmp_path, does), stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert any(read.rstrip().endswith(line) for read in process.stdout)
        (tmp_path / "until").touch()
        process.stdout.read()
    assert process.returncode == 0


def test_without_an_index_it_says_so_and_leaves_nothing(tmp_path: Path, command: list[str]) -> None:
    completed = subprocess.run(
        command, env=environment(tmp_path, "fails"), capture_output=True, text=True, cwd=ROOT
    )
    assert completed.returncode == 1
    assert "no package index answers" in completed.stderr
    assert "PIP_INDEX_URL" in completed.stderr
    assert not (tmp_path / "venv").exists()


def test_another_failure_prints_what_pip_printed(tmp_path: Path, command: list[str]) -> None:
    completed = subprocess.run(
        command, env=environment(tmp_path, "breaks"), capture_output=True, text=True, cwd=ROOT
    )
    assert completed.returncode == 1
    assert "DO NOT MATCH THE HASHES" in completed.stderr
    assert "index" not in completed.stderr
    assert not (tmp_path / "venv").exists()
