"""`make test` reports progress, where the time goes, and how to repeat a failure."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.paths import ROOT
from tests.__main__ import run_session, run_sessions
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


def test_a_session_prints_progress_time_and_the_command_of_a_failure(
    suite: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = "from tests.support import progress; progress.INTERVAL_S = 0; import pytest, sys;"
    command = [sys.executable, "-c", f"{code} sys.exit(pytest.main(sys.argv[1:]))", *suite[3:]]
    assert asyncio.run(run_session("stores", command)) == 1
    printed = capsys.readouterr().out
    progress_lines, _, rest = printed.partition("session stores")
    assert progress_lines.splitlines()[:2] == [
        "stores 0:00: 0 of 3 tests, 0 failed",
        "stores 0:00: 0 of 3 tests, 0 failed",
    ]
    assert "stores 0:00: 3 of 3 tests, 1 failed" in progress_lines
    assert "stores: seconds of workers" in rest
    [repeat] = [line for line in rest.splitlines() if line.startswith("make test ARGS=")]
    assert repeat.endswith("test_suite.py::test_one_fails[1]'")
    assert "1 failed, 2 passed" in rest
    assert progress.PREFIX not in printed


def test_an_ordinary_session_prints_no_progress(suite: list[str]) -> None:
    env = {name: value for name, value in os.environ.items() if name != progress.SESSION}
    completed = subprocess.run(suite, cwd=ROOT, env=env, capture_output=True, text=True)
    assert completed.returncode == 1
    assert "seconds of workers" not in completed.stdout


def test_sigterm_ends_the_sessions(tmp_path: Path) -> None:
    """Given sessions that never end by themselves."""
    started = [tmp_path / name for name in ("stack", "stores")]
    code = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
    sessions = {file.name: [sys.executable, "-c", code, str(file)] for file in started}

    async def run() -> None:
        running = asyncio.ensure_future(run_sessions(sessions))
        async with asyncio.timeout(60):
            while not all(file.exists() for file in started):
                await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(run())
