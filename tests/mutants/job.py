"""A job of the runner: a copy of the checkout, a Redis and a MariaDB, and mutants in turn.

The process of a job imports the packages that tests need once, and forks for each run of pytest;
so a run costs the import of Plaza and its tests, and no start of a server.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.paths import LAYER, ROOT
from tests.mutants.mutant import Mutant
from tests.support.servers import SharedServers, share_servers

KILLED, TIMEOUT, SURVIVED, BROKEN = "killed", "timeout", "survived", "broken"
MODEL_RUNS = 30
_TIMEOUT_S = {"again": 120, "nearest": 120, "context": 1_200, "model": 900}
_OWN = ("cli", "functions", "local", "ops", "plaza", "tests", "tools")  # packages of a checkout
# Imported before a fork: packages that are the same in each run of pytest.
_SHARED = (
    "boto3", "botocore.session", "greenlet", "hypothesis", "moto", "pymysql", "pytest_socket",
    "redis.cluster", "requests", "xdist.scheduler", "yaml",
)  # fmt: skip
_PRELOADED = "ignore::pytest.PytestAssertRewriteWarning"


class Verdict(NamedTuple):
    """The outcome of a mutant: ``stage`` and ``test`` that killed it, and how long it took.
    BROKEN: ``test`` fails without the mutant, too."""

    outcome: str
    stage: str = ""
    test: str = ""
    seconds: float = 0.0


class _Run(NamedTuple):
    passed: bool
    timed_out: bool
    failed: str  # the first test that failed


class _FirstFailure:
    """A plugin of pytest that writes the name of the first test that failed to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid)


def serve(pipe: Connection) -> None:
    """Play each (mutant, test that killed it before, whether only the nearest tests are played)
    from ``pipe``, and send its verdict back. None ends the job."""
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt), _open_job() as job:
        pipe.send(None)
        while (received := pipe.recv()) is not None:
            pipe.send(job.play(*received))


@contextlib.contextmanager
def _open_job() -> Iterator[Job]:
    for name in _SHARED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="plaza-mutants-") as folder:
        directory = Path(folder)
        copy_checkout(directory / "checkout")
        with share_servers(directory) as shared:
            yield Job(directory, shared)


def copy_checkout(to: Path) -> None:
    """Copy the files of this checkout that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


class Job:
    """Runs tests in a copy of the checkout."""

    def __init__(self, directory: Path, servers: SharedServers) -> None:
        self.directory = directory
        self.checkout = directory / "checkout"
        self.servers = servers
        self.sound: set[str] = set()  # files and tests that pass without a mutant

    def play(self, mutant: Mutant, killer: str, only_nearest: bool) -> Verdict:
        """Return the verdict of the nearest tests, then of the context's, then of its model.
        ``killer``, the test that killed it before, runs first."""
        began_s = time.monotonic()
        stages = mutant.list_stages()
        if killer:
            stages = {"again": [killer], **stages}
        for stage, tests in stages.items():
            if not tests:
                continue  # a context without a model
            timeout_s = _TIMEOUT_S[stage]
            with self._mutated(mutant):
                run = self._run(tests, timeout_s)
            if stage == "again" and not (run.failed or run.timed_out):
                continue  # it passes, or does not exist any more
            if not run.passed:
                outcome = TIMEOUT if run.timed_out else KILLED
                found_by = run.failed or tests[0]
                seconds = round(time.monotonic() - began_s, 1)
                if not self._is_sound(found_by, tests, timeout_s):
                    outcome = BROKEN
                return Verdict(outcome, stage, found_by, seconds)
            if stage == "nearest" and (only_nearest or mutant.equivalent):
                break
        return Verdict(SURVIVED, seconds=round(time.monotonic() - began_s, 1))

    def _is_sound(self, test: str, stage: Sequence[str], timeout_s: float) -> bool:
        """Return whether a test that found a mutant passes without it. All files of a short stage
        are played at once: most of their tests find some mutant."""
        file = test.partition("::")[0]
        if file not in self.sound and file in stage and self._run(stage, timeout_s).passed:
            self.sound.update(stage)
        if (
            file not in self.sound
            and test not in self.sound
            and self._run([test], timeout_s).passed
        ):
            self.sound.add(test)
        return file in self.sound or test in self.sound

    @contextlib.contextmanager
    def _mutated(self, mutant: Mutant) -> Iterator[None]:
        path = mutant.path(self.checkout)
        text = path.read_text()
        try:
            _write(path, mutant.apply(text))
            yield
        finally:
            _write(path, text)

    def _run(self, tests: Sequence[str], timeout_s: float) -> _Run:
        """Run tests in a process of their own until the first failure."""
        self.servers.restore()
        failed = self.directory / "failed"
        failed.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            _run_pytest(self.directory, tests, failed)
        try:
            status = _wait(pid, timeout_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        name = failed.read_text() if failed.exists() else ""
        return _Run(status == 0, status is None, name)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    # Python takes a file of the same second and size for unchanged.
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _wait(pid: int, timeout_s: float) -> int | None:
    """Return the exit status of a process; None, and it is killed, when it takes too long. Raises
    EOFError when the runner has ended meanwhile."""
    until_s, runner = time.monotonic() + timeout_s, os.getppid()
    while time.monotonic() < until_s:
        if os.getppid() != runner:
            raise EOFError
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _run_pytest(directory: Path, tests: Sequence[str], failed: Path) -> None:
    """Become a process that runs tests of the copy and nothing else."""
    status = 1
    try:
        os.setsid()
        log = os.open(directory / "pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        checkout = directory / "checkout"
        sys.dont_write_bytecode = False  # of the copy, whatever the shell says
        os.chdir(checkout)
        os.environ["PLAZA_TEST_SERVERS"] = str(directory)
        os.environ["PLAZA_MODEL_RUNS"] = str(MODEL_RUNS)
        layer = checkout / LAYER.relative_to(ROOT)
        others = [path for path in sys.path if path not in ("", str(ROOT), str(LAYER))]
        sys.path[:] = [str(checkout), str(layer), *others]
        for name in [name for name in sys.modules if name.partition(".")[0] in _OWN]:
            del sys.modules[name]
        logging.root.manager.loggerDict.pop("plaza", None)  # Powertools configures a logger once
        options = ["-x", "-q", "-W", _PRELOADED]
        for plugin in ("anyio", "cacheprovider", "schemathesis"):  # importing them takes 0.8 s
            options += ["-p", f"no:{plugin}"]
        options += ["--basetemp", str(directory / "tmp")]
        status = int(pytest.main([*options, *tests], plugins=[_FirstFailure(failed)]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
