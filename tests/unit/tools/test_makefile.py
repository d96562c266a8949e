"""What `make` prints: its commands, and no noise of its own."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from cli.paths import ROOT

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="NOT TESTED: make is missing")


def make(*words: str) -> str:
    completed = subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@needs_make
def test_help_names_the_commands_of_the_stack_and_what_becomes_of_its_data() -> None:
    printed = make("help")
    for line in ("make fresh", ".venv/bin/python -m local", ".venv/bin/python -m ops"):
        assert f"  {line} " in printed
    assert "with their data" in next(line for line in printed.splitlines() if " clean " in line)


@needs_make
def test_a_setup_that_has_nothing_to_do_does_not_list_what_is_up_to_date() -> None:
    assert "up to date" not in make("--dry-run", "setup")
