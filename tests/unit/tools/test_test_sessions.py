"""`make test` reports progress, where the time goes, and how to repeat a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cli.paths import ROOT
from tests.support import progress

SUITE = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_one_fails(n):
    assert n != 1
"""
PLUGINS = ("-p", "no:cacheprovider", "-p", "tests.support.progress")


@pytest.fixture
def suite(tmp_path: Path) -> list[str]:
    """The command of a suite of three tests, of which one fails."""
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return [sys.executable, "-m", "pytest", "-q", *PLUGINS, str(tmp_path)]


def run_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start Python in the repository, with ``code`` that gets ``arguments``."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_session_prints_progress_time_and_the_command_of_a_failure(suite: list[str]) -> None:
    slow = "import sys; from tests.support import progress; progress.INTERVAL_S = 0"
    session = [sys.executable, "-c", f"{slow}; import pytest; sys.exit(pytest.main(sys.argv[1:]))"]
    code = "import sys; from tests.__main__ import *; print(run_sessions({'stores': sys.argv[1:]}))"
    printed, _ = run_python(code, *session, *suite[3:]).communicate(timeout=120)
    progress_lines, _, rest = printed.partition("session stores")
    assert "stores 0:0" in progress_lines
    assert ": 3 of 3 tests, 1 failed" in progress_lines
    assert "stores: seconds of workers" in rest
    [repeat] = [line for line in rest.splitlines() if line.startswith("make test ARGS=")]
    assert repeat.endswith("test_suite.py::test_one_fails[1]'")
    assert "1 failed, 2 passed" in rest
    assert rest.splitlines()[-1] == "{'stores': 1}"
    assert progress.PREFIX not in printed


def test_an_ordinary_session_prints_no_progress(suite: list[str]) -> None:
    env = {name: value for name, value in os.environ.items() if name != progress.SESSION}
    completed = subprocess.run(suite, cwd=ROOT, env=env, capture_output=True, text=True)
    assert completed.returncode == 1
    assert "seconds of workers" not in completed.stdout


def test_sigterm_ends_the_sessions() -> None:
    """Given two sessions that never end by themselves."""
    session = "import os, time; print(':: ', os.getpid(), sep='', flush=True); time.sleep(600)"
    code = (
        "import sys; from tests.__main__ import *;"
        "run_sessions({name: [sys.executable, '-c', sys.argv[1]] for name in 'ab'})"
    )
    process = run_python(code, session)
    assert process.stdout is not None
    children = [psutil.Process(int(process.stdout.readline())) for _ in range(2)]
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert psutil.wait_procs(children, timeout=60)[1] == []
