"""Fuzz the running stack from outside: every check of schemathesis, by two workers.

    python -m tests.e2e.fuzz [--dir .local] [--seconds 60] [--examples 20] [--role moderator]

With a role each request is sent by a user who has it; without one, reads of operators by an admin
and all else by a user. A role changes the stack: it purges, hides, erases and sets switches.

A response that takes more than 2 s is a failure, also the first one of a cold function. The exit
status is 1 when a check failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from cli.paths import DIRECTORY, LAYER, ROOT
from local.stack.stack import Stack
from tests.e2e.contract_hooks import ROLE, ROLES, STACK

MAX_RESPONSE_S = 2
CONFIG = Path(__file__).with_name("fuzz.toml")


def main() -> int:
    """Run schemathesis; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fuzz", description=__doc__)
    parser.add_argument("--dir", type=Path, default=DIRECTORY, help="directory of the stack")
    parser.add_argument("--seconds", type=int, default=60, help="limit of the whole run")
    parser.add_argument("--examples", type=int, default=20, help="of each operation and phase")
    parser.add_argument("--role", choices=ROLES, help="of who sends each request")
    options = parser.parse_args()
    stack = Stack.load(options.dir)
    stack.invoke("RefreshRankings", {})  # before its first schedule
    command: list[str | Path] = [
        Path(sys.executable).with_name("schemathesis"), "--config-file", CONFIG, "--no-color",
        "run", f"{stack.base_url}/openapi.json", "--url", stack.base_url,
        "--workers", "2", "--max-response-time", str(MAX_RESPONSE_S),
        "--max-examples", str(options.examples), "--max-time", str(options.seconds),
        "--phases", "examples,coverage,fuzzing", "--continue-on-failure",
    ]  # fmt: skip
    env = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{LAYER}",
        "SCHEMATHESIS_HOOKS": "tests.e2e.contract_hooks",
        STACK: str(options.dir.resolve()),
        ROLE: options.role or "",
    }
    return subprocess.run(command, env=env, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
