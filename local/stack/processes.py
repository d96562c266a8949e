"""Processes that are ended reliably: each in a session of its own, identified by pid and start
time."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from cli.paths import CommandError

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Process:
    """A started process. A recycled pid has another start time, so it is never mistaken."""

    name: str
    pid: int
    started_s: float

    def find(self) -> psutil.Process | None:
        """Return the living process; None when it ended or is a zombie."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started_s) < 0.05
        except psutil.NoSuchProcess:
            return None
        return process if same and is_alive(process) else None

    def is_running(self) -> bool:
        return self.find() is not None

    @classmethod
    def of_this_one(cls, name: str) -> Self:
        own = psutil.Process()
        return cls(name, own.pid, own.create_time())


def start_process(
    name: str,
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    attached: bool = True,
) -> Process:
    """Start ``argv`` in a session of its own, its output appended to ``log``.

    ``attached``: it gets SIGTERM when the calling process dies in any way (Linux only).
    """
    child = _spawn(argv, log=log, env=env, cwd=cwd, attached=attached)
    return _describe(name, child, log)


def _spawn(
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None,
    cwd: Path | None,
    attached: bool,
) -> subprocess.Popen[bytes]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_end_with_parent(os.getpid()) if attached else None,
        )


def _describe(name: str, child: subprocess.Popen[bytes], log: Path) -> Process:
    try:
        return Process(name, child.pid, psutil.Process(child.pid).create_time())
    except psutil.NoSuchProcess:
        raise CommandError(f"{name} ended at once; its output is in {log}") from None


def wait_until_ready(
    process: Process, is_ready: Callable[[], bool], log: Path, timeout_s: float
) -> None:
    """Wait until a process answers. Else stop it and raise CommandError with its last lines."""
    wait_until(lambda: is_ready() or not process.is_running(), timeout_s)
    if not (process.is_running() and is_ready()):
        stop_process(process)
        raise CommandError(f"{process.name} did not start ({log}):\n{read_tail(log, 15)}")


def read_tail(log: Path, lines: int) -> str:
    return "\n".join(log.read_text(errors="replace").strip().splitlines()[-lines:])


def stop_process(process: Process, *, grace_s: float = 8.0) -> None:
    """End a process and the rest of its session. Does nothing to a recycled pid."""
    running = process.find()
    if running is None:
        _reap(process.pid)
        return
    session = _session_of(running)
    with contextlib.suppress(psutil.NoSuchProcess):
        running.send_signal(signal.SIGCONT)
        running.terminate()
    if not wait_until(lambda: not process.is_running(), grace_s):
        with contextlib.suppress(psutil.NoSuchProcess):
            running.kill()
    end_all(session, grace_s=1.0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # processes started meanwhile
    wait_until(lambda: not process.is_running(), 2.0)
    _reap(process.pid)


def end_all(members: Sequence[psutil.Process], *, grace_s: float) -> None:
    """End processes: SIGTERM, then SIGKILL for those alive after ``grace_s``."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        for member in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.send_signal(signum)
        if wait_until(lambda: not any(is_alive(member) for member in members), grace_s):
            return


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def find_processes_in(directory: Path) -> list[psutil.Process]:
    """Return this user's processes that work in ``directory``, such as those left by a crash."""
    inside = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and Path(process.cwd()).is_relative_to(directory):
                inside.append(process)
    return inside


def run_command(
    name: str,
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run a command that ends by itself. Raises CommandError with the end of its output.

    An interrupt ends it and its children first.
    """
    log.unlink(missing_ok=True)
    # A Popen that is dropped reaps an ended child, and its status is lost.
    child = _spawn(argv, log=log, env=env, cwd=cwd, attached=True)
    process = _describe(name, child, log)
    try:
        status = child.wait()
    except BaseException:
        stop_process(process)
        raise
    if status != 0:
        raise CommandError(f"{name} failed ({log}):\n{read_tail(log, 25)}")


def wait_until(condition: Callable[[], bool], timeout_s: float, step_s: float = 0.02) -> bool:
    """Wait until ``condition`` is true. Returns False after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step_s)
    return True


def _session_of(leader: psutil.Process) -> list[psutil.Process]:
    """Return the descendants of ``leader``; read before it ends, when they lose their parent."""
    try:
        return leader.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _end_with_parent(parent_pid: int) -> Callable[[], None] | None:
    """Return a function for a child to call before exec, so that it ends with its parent."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def request_signal() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent_pid:  # the parent died between fork and prctl
            os._exit(1)

    return request_signal
