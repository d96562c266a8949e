"""``python -m tests.support.alone``: run each test file alone, in a process of its own.

  python -m tests.support.alone                   all files of `make test`
  python -m tests.support.alone tests/unit/infra  the files in these folders, or these files
  python -m tests.support.alone --jobs 4          four at a time

A job has a Redis and a MariaDB, which its files use in turn; each file of tests/e2e starts a stack.
Exit status 1 when a file fails, whose output and command are printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import pytest

from cli.paths import ROOT
from tests.support.servers import SharedServers, share_servers

_PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class Run(NamedTuple):
    """How a file ended alone."""

    file: str
    passed: bool
    seconds: float
    output: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen files; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.alone",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", help="files and folders", type=Path)
    parser.add_argument("--jobs", type=int, default=2, help="files at a time")
    options = parser.parse_args(argv)
    files, failed = find_files(options.paths), []
    began_s = time.monotonic()
    for number, run in enumerate(run_all(files, options.jobs), 1):
        print(f"{number}/{len(files)} {run.seconds:6.1f} s  {run.file}", flush=True)
        if not run.passed:
            failed.append(run.file)
            print(run.output, flush=True)
    print(f"{len(files)} files, each alone, in {time.monotonic() - began_s:.0f} s")
    for file in failed:
        print(f"failed: make test ARGS={file}")
    return int(bool(failed))


def find_files(paths: Sequence[Path]) -> list[str]:
    """Return the test files in these paths; without any all but tests/cluster. Tests of the stack
    begin, because they take longest."""
    files = {
        str(file.resolve().relative_to(ROOT))
        for path in paths or [ROOT / "tests"]
        for file in ([path] if path.is_file() else path.rglob("test_*.py"))
    }
    if not paths:
        files = {file for file in files if not file.startswith("tests/cluster/")}
    return sorted(files, key=lambda file: (not file.startswith("tests/e2e/"), file))


def run_all(files: Sequence[str], jobs: int) -> Iterator[Run]:
    """Run files, ``jobs`` at a time; yield how each ended."""
    with ExitStack() as stack:
        free: SimpleQueue[tuple[Path, SharedServers]] = SimpleQueue()
        for _ in range(min(jobs, len(files))):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="plaza-alone-"))
            free.put((Path(folder), stack.enter_context(share_servers(Path(folder)))))

        def run_next(file: str) -> Run:
            directory, servers = job = free.get()
            try:
                return run_alone(file, directory, servers)
            finally:
                free.put(job)

        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        yield from pool.map(run_next, files)


def run_alone(file: str, directory: Path, servers: SharedServers) -> Run:
    """Run a file on the servers of a job."""
    servers.restore()
    began_s = time.monotonic()
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-r", "fE", "-p", "no:cacheprovider", file],
        cwd=ROOT,
        env=os.environ | {"PLAZA_TEST_SERVERS": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    passed = completed.returncode in _PASSED
    return Run(file, passed, time.monotonic() - began_s, completed.stdout)


if __name__ == "__main__":
    sys.exit(main())
