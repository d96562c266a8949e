"""Programs of Node in tests. Those that need npm packages are skipped where there are none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.paths import ROOT, CommandError
from tools.node import find_node, node_environment, npm_command

CLIENT = ROOT / "clients" / "typescript"
WEB = ROOT / "web"
MODULES = ROOT / "node_modules"
needs_npm_packages = pytest.mark.skipif(
    not (MODULES / ".ready").exists(),
    reason="NOT TESTED: the npm packages are missing; `make node_modules/.ready` installs them",
)


def run_node(*words: str | Path, cwd: Path = ROOT, timeout_s: float = 120) -> str:
    """Run a program and return its output. Fails the test on another exit status than 0."""
    return _run([str(_node()), *map(str, words)], cwd, timeout_s)


def run_npm(*words: str, cwd: Path = ROOT, timeout_s: float = 120) -> str:
    """Run npm, without a network, and return its output. Fails the test if npm fails."""
    _node()
    return _run([*npm_command(), "--offline", "--silent", *words], cwd, timeout_s)


def _node() -> Path:
    try:
        return find_node()
    except CommandError as error:
        pytest.skip(f"NOT TESTED: {error}")


def _run(command: list[str], cwd: Path, timeout_s: float) -> str:
    completed = subprocess.run(
        command, cwd=cwd, env=node_environment(), capture_output=True, text=True, timeout=timeout_s
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout
