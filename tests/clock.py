"""``python -m tests.clock``: run unit and integration tests at other times of the clock.

  python -m tests.clock                         in 1 and in 45 days, on 29 February 2028, a minute
                                                before the next year
  python -m tests.clock --at +400               in 400 days
  python -m tests.clock --at "2028-02-29 12:00" from that time on (UTC)
  python -m tests.clock tests/unit/social/feed -x      arguments for pytest, instead of all tests

tests/support/clock.c moves the clock of pytest and of what it starts: Redis, MariaDB, commands. The
monotonic clock is not moved. Exit status 1 when a test failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.paths import ROOT

_TESTS = ("tests/unit", "tests/integration")


def list_times(now: datetime) -> dict[str, datetime]:
    """Return name -> time: a day on, after the deadlines of a month, a leap day, a year's end."""
    return {
        "+1 day": now + timedelta(days=1),
        "+45 days": now + timedelta(days=45),
        "2028-02-29 12:00 UTC": datetime(2028, 2, 29, 12, tzinfo=UTC),
        "12/31 23:59 UTC": datetime(now.year, 12, 31, 23, 59, tzinfo=UTC),
    }


def parse_time(text: str, now: datetime) -> datetime:
    """Return the time of ``+days`` or of an ISO time, of UTC without an offset."""
    if text.startswith("+"):
        return now + timedelta(days=float(text))
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def run_tests(library: Path, offset_s: float, arguments: list[str]) -> int:
    """Run pytest with its clock moved by ``offset_s``; return its exit status."""
    env = os.environ | {"LD_PRELOAD": str(library), "PLAZA_CLOCK_OFFSET_S": f"{offset_s:.0f}"}
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.clock",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--at", help="+days, or an ISO time; default: four times")
    args, arguments = parser.parse_known_args()
    now = datetime.now(UTC)
    times = {args.at: parse_time(args.at, now)} if args.at else list_times(now)
    results = {}
    with TemporaryDirectory() as directory:
        library = Path(directory) / "clock.so"
        build = ["cc", "-shared", "-fPIC", "-o", str(library), "tests/support/clock.c"]
        subprocess.run(build, cwd=ROOT, check=True)
        for name, time in times.items():
            print(f"=== {name}: {time:%Y-%m-%d %H:%M} UTC", flush=True)
            offset_s = (time - datetime.now(UTC)).total_seconds()
            results[name] = run_tests(library, offset_s, arguments or list(_TESTS))
    for name, status in results.items():
        print(f"{'✗' if status else '✓'} {name}")
    return int(any(results.values()))


if __name__ == "__main__":
    sys.exit(main())
