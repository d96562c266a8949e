"""Each bench runs: it is played by people alone, and what it measures changes under it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bench import NAMES
from cli.paths import ROOT


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES)
def test_a_bench_prints_its_figures(name: str) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "bench", name, "--quick", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout), "figures"
