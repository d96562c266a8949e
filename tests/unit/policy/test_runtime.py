"""The version of Python: .python-version has it, all else agrees."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from deploy.parts import DATA
from tests.unit.policy import template
from tests.unit.policy.modules import ROOT, tracked

VERSION = (ROOT / ".python-version").read_text().strip()
OLDEST = "3.11"
CLIENT = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text())
OLDEST_OF_CLIENTS = CLIENT["project"]["requires-python"].removeprefix(">=")
NAMED = re.compile(r"\b[Pp]ython[ =:\"-]*(3\.\d+)")
SUFFIXES = {"", ".md", ".mk", ".yaml", ".yml", ".toml", ".json", ".py"}
FIND = ROOT / "tools" / "find_python"


@pytest.mark.parametrize("file", [template.ROOT / "template.yaml", DATA.template])
def test_a_template_has_this_version_and_the_oldest_one(file: Path) -> None:
    runtime = template.load_template(file.read_text())["Parameters"]["Runtime"]
    assert runtime["Default"] == f"python{VERSION}"
    assert runtime["AllowedValues"] == [f"python{VERSION}", f"python{OLDEST}"]


def test_the_layer_is_built_for_this_version() -> None:
    source = (ROOT / "layers" / "common" / "layer.mk").read_text()
    assert re.findall(r"^PYTHON .*", source, re.MULTILINE) == [f"PYTHON ?= python{VERSION}"]


def test_code_is_checked_for_the_oldest_version() -> None:
    source = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">={OLDEST}"' in source
    assert f'target-version = "py{OLDEST.replace(".", "")}"' in source
    assert f'python_version = "{OLDEST}"' in source


def test_no_file_but_tests_names_another_version() -> None:
    """Apps that use the Python client may run on older ones."""
    named = {
        f"{file.relative_to(ROOT)}: {match}"
        for file in tracked()
        if file.suffix in SUFFIXES and ROOT / "tests" not in file.parents
        for match in NAMED.findall(file.read_text(errors="replace"))
        if match not in {VERSION, OLDEST, OLDEST_OF_CLIENTS}
    }
    assert named == set()


def test_an_older_version_is_found_when_the_newer_one_is_missing(tmp_path: Path) -> None:
    """Given commands that fail, as pyenv's do for a version that it has not selected."""
    fake = tmp_path / "python3.11"
    fake.write_text("#!/bin/sh\necho old\n")
    missing = tmp_path / "python3.99"
    missing.write_text("#!/bin/sh\necho no such version >&2\nexit 127\n")
    for command in (fake, missing):
        command.chmod(0o755)
    completed = find_python(tmp_path, "3.99", "3.11")
    assert (completed.returncode, completed.stdout) == (0, "old\n")


def test_a_machine_without_a_version_reads_which_one_to_install(tmp_path: Path) -> None:
    completed = find_python(tmp_path, "3.99")
    assert completed.returncode == 1
    assert "Python 3.99 is missing" in completed.stderr


def find_python(commands: Path, *versions: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{commands}:/usr/bin:/bin", "HOME": str(commands)}
    return subprocess.run([FIND, *versions], env=env, capture_output=True, text=True, check=False)
