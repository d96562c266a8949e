"""Two commands may stop a stack at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from local import up
from local.stack.processes import Process, start_process, stop_process
from local.stack.stack import REQUIRED_PROCESSES, Stack

FILES = 300
DEADLINE_S = 60


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the directory of a running stack of two processes."""
    directory = tmp_path / "stack"
    for folder in ("processes", "logs", "tmp", *(f"part{n}" for n in range(FILES))):
        (directory / folder).mkdir(parents=True)
    for n in range(FILES):
        (directory / f"part{n}" / "data").write_text("x")
        (directory / f"file{n}").write_text("x")
    (directory / "lock").touch()
    (directory / "stack.json").write_text("{}")
    for name in REQUIRED_PROCESSES:
        process = start_process(name, ["sleep", "600"], log=directory / "logs" / f"{name}.log")
        (directory / "processes" / f"{name}.json").write_text(json.dumps(asdict(process)))
    return directory


def processes(directory: Path) -> list[Process]:
    return [
        Process(**json.loads((directory / "processes" / f"{name}.json").read_text()))
        for name in REQUIRED_PROCESSES
    ]


def test_several_commands_end_a_stack_at_once(directory: Path) -> None:
    started = processes(directory)
    command = [sys.executable, "-m", "local", "--dir", str(directory), "down"]
    ends = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [end.communicate(timeout=DEADLINE_S) for end in ends]
    assert [end.returncode for end in ends] == [0, 0], outputs
    assert {errors for _, errors in outputs} == {""}
    assert [out for out, _ in outputs].count("stopped\n") == 1
    assert not any(process.is_running() for process in started)
    assert {entry.name for entry in directory.iterdir()} == {"lock", "end-lock", "logs"}


def test_stack_that_another_command_ends_is_reported_as_ended(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = Stack(directory)
    other = threading.Thread(target=Stack(directory).down)
    other.start()
    assert up.wait_until_stopped(stack) == 0
    stack.down()
    other.join(DEADLINE_S)
    assert "down" not in capsys.readouterr().out


def test_running_load_is_interrupted_when_another_command_stops_the_stack(
    directory: Path,
) -> None:
    stack, never = Stack(directory), threading.Event()
    other = threading.Thread(target=Stack(directory).down)

    def play() -> None:
        with up.interrupt_when_stopped(stack):
            other.start()
            never.wait(DEADLINE_S)

    with pytest.raises(KeyboardInterrupt):
        play()
    other.join(DEADLINE_S)


def test_stack_ends_when_it_loses_a_required_part(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = processes(directory)
    stop_process(first)
    try:
        assert up.wait_until_stopped(Stack(directory)) == 1
        assert f"{first.name} is down" in capsys.readouterr().out
    finally:
        Stack(directory).down()
