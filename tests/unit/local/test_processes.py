"""Started processes are ended, and no others."""

import signal
import sys
from pathlib import Path

import psutil
import pytest

from cli.paths import CommandError
from local.stack.processes import (
    Process,
    is_alive,
    run_command,
    start_process,
    stop_process,
    wait_until,
)

SLEEP = "import time; time.sleep(60)"
PARENT = (
    "import subprocess, sys, time;"
    f"subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=False);"
    "print('started', flush=True); time.sleep(60)"
)
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('started', flush=True); time.sleep(60)"
)


def start(tmp_path: Path, script: str) -> Process:
    return start_process("sleeper", [sys.executable, "-c", script], log=tmp_path / "log")


def test_stopping_ends_the_process_and_its_children(tmp_path: Path) -> None:
    process = start(tmp_path, PARENT)
    assert wait_until(lambda: "started" in (tmp_path / "log").read_text(), 10)
    (child,) = psutil.Process(process.pid).children()

    stop_process(process)

    assert not process.is_running()
    assert not is_alive(child)


def test_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    process = start(tmp_path, DEAF)
    assert wait_until(lambda: "started" in (tmp_path / "log").read_text(), 10)
    stop_process(process, grace_s=0.2)
    assert not process.is_running()


def test_paused_process_can_be_stopped(tmp_path: Path) -> None:
    process = start(tmp_path, SLEEP)
    psutil.Process(process.pid).send_signal(signal.SIGSTOP)
    stop_process(process)
    assert not process.is_running()


def test_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    process = start(tmp_path, SLEEP)
    try:
        earlier = Process("gone", process.pid, process.started_s - 100)
        assert not earlier.is_running()
        stop_process(earlier)
        assert process.is_running()
    finally:
        stop_process(process)


def test_stopping_twice_does_no_harm(tmp_path: Path) -> None:
    process = start(tmp_path, SLEEP)
    stop_process(process)
    stop_process(process)


def test_command_that_fails_shows_the_end_of_its_output(tmp_path: Path) -> None:
    script = "import sys; print('the reason'); sys.exit(3)"
    with pytest.raises(CommandError, match="the reason"):
        run_command("it", [sys.executable, "-c", script], log=tmp_path / "log")
