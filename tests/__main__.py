"""``python -m tests [--deep]``: the tests of `make test` or `make test-deep`, in two sessions;
``--coverage``: the second one alone, with the lines of the layer that it reaches.

The session *stack* plays tests/e2e, which mostly waits; the session *stores* plays all others
beside it. Progress is printed at once, the output of a session at its end.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time

from cli.paths import ROOT
from tests.support import coverage
from tests.support.depth import DEEP
from tests.support.progress import PREFIX, SESSION, format_s

PYTEST = ("-m", "pytest", "-q", "--durations", "10")
STACK = ("tests/e2e",)
STORES = ("--ignore", "tests/cluster", "--ignore", "tests/e2e")
NO_TESTS = 5  # exit status of pytest


def list_sessions(workers: int, *, is_deep: bool, measured: bool = False) -> dict[str, list[str]]:
    """Return name -> command of each session. Measuring takes a third more CPU."""
    marked = ["-m", "deep or sampled" if is_deep else "not deep", "--numprocesses", str(workers)]
    if measured:
        return {"stores": [sys.executable, "-m", "slipcover", *PYTEST, *marked, *STORES]}
    return {
        "stack": [sys.executable, *PYTEST, *marked, *STACK],
        "stores": ["nice", "-n", "5", sys.executable, *PYTEST, *marked, *STORES],
    }


def relay(name: str, process: subprocess.Popen[str]) -> None:
    """Print lines of progress at once, and all others when the session has ended."""
    assert process.stdout is not None
    kept = []
    for line in process.stdout:
        if PREFIX in line:
            print(line.partition(PREFIX)[2], end="", flush=True)
        else:
            kept.append(line)
    print(f"\n{'':=<30} session {name} {'':=<30}\n{''.join(kept)}", end="", flush=True)


def run_sessions(sessions: dict[str, list[str]], *, is_deep: bool = False) -> dict[str, int]:
    """Run sessions side by side. Returns name -> exit status. SIGTERM ends the sessions."""
    processes: dict[str, subprocess.Popen[str]] = {}
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        for name, command in sessions.items():
            env = {**os.environ, SESSION: name, DEEP: str(int(is_deep))}
            processes[name] = subprocess.Popen(
                command,
                cwd=ROOT,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        relays = [threading.Thread(target=relay, args=started) for started in processes.items()]
        for thread in relays:
            thread.start()
        for thread in relays:
            thread.join()
    finally:
        for process in processes.values():
            process.terminate()
    return {name: process.wait() for name, process in processes.items()}


def main() -> int:
    """Run the sessions, then report time, or coverage. Returns 1 after a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("--deep", action="store_true", help="the tests of `make test-deep`")
    parser.add_argument("--coverage", action="store_true", help="print the lines not reached")
    parser.add_argument("--workers", type=int, default=2, help="processes of each session")
    options = parser.parse_args()
    began_s = time.monotonic()
    sessions = list_sessions(options.workers, is_deep=options.deep, measured=options.coverage)
    print(f"tests: {' and '.join(sessions)}, side by side", flush=True)
    results = run_sessions(sessions, is_deep=options.deep)
    failed = [name for name, status in results.items() if status not in (0, NO_TESTS)]
    if options.coverage and coverage.report(list_missing=True) and not failed:
        failed.append("coverage")
    outcome = f"FAILED: {', '.join(failed)}" if failed else "all passed"
    print(f"tests: {outcome}, {format_s(time.monotonic() - began_s)} after setup", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
