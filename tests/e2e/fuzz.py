"""Fuzz the running stack from outside: every check of schemathesis, by two workers.

    python -m tests.e2e.fuzz [--dir .local] [--seconds 60] [--examples 20] [--role moderator]

With a role each request is sent by a user who has it, by a merchant who owns the shops, by a server
with a key, or without a token; without one, reads of operators by an admin and all else by a user.
With several roles each has a run of its own. A role changes the stack: it purges, hides, erases and
sets switches.

A response that takes more than 2 s (``--slowest``) is a failure, also the first one of a cold
function. The table at the end has each role's requests, their statuses, and how many of these the
contract does not have. The exit status is 1 when there is one, or a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from cli.output import wide_console
from cli.paths import DIRECTORY, LAYER, ROOT
from local.stack.stack import Stack
from tests.e2e import fuzz_ids
from tests.e2e.contract_hooks import (
    COUNTS,
    IDS,
    MERCHANT,
    ROLE,
    ROLES,
    STACK,
    identify,
    role_of_user,
)

CONFIG = Path(__file__).with_name("fuzz.toml")
HEADINGS = ("role", "requests", "statuses", "undocumented", "checks")


class Outcome(NamedTuple):
    """What a run got: responses by status, those that the contract or a session does not allow, and
    whether each check passed."""

    statuses: Counter[str]
    wrong: Counter[str]
    passed: bool


def main() -> int:
    """Run schemathesis, once a role; return its worst exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fuzz", description=__doc__)
    parser.add_argument("--dir", type=Path, default=DIRECTORY, help="directory of the stack")
    parser.add_argument("--seconds", type=int, default=60, help="limit of the run of each role")
    parser.add_argument("--examples", type=int, default=20, help="of each operation and phase")
    parser.add_argument(
        "--role", choices=ROLES, action="append", help="of who sends each request; repeatable"
    )
    parser.add_argument("--slowest", type=float, default=2, help="limit of a response, in seconds")
    options = parser.parse_args()
    stack = Stack.load(options.dir)
    stack.invoke("RefreshRankings", {})  # before its first schedule
    outcomes = {role: fuzz(stack, role, options) for role in dict.fromkeys(options.role or [""])}
    for role, outcome in outcomes.items():
        for name, times in outcome.wrong.items():
            print(f"{role or 'no role'}: undocumented, or its session ended: {name}, {times} times")
    wide_console().print(make_table([format_row(*item) for item in outcomes.items()]))
    return 0 if all(outcome.passed for outcome in outcomes.values()) else 1


def fuzz(stack: Stack, role: str, options: argparse.Namespace) -> Outcome:
    """Run schemathesis as ``role``; as a user and an admin without one."""
    command: list[str | Path] = [
        Path(sys.executable).with_name("schemathesis"), "--config-file", CONFIG, "--no-color",
        "run", f"{stack.base_url}/openapi.json", "--url", stack.base_url,
        "--workers", "2", "--max-response-time", str(options.slowest),
        "--max-examples", str(options.examples), "--max-time", str(options.seconds),
        "--phases", "examples,coverage,fuzzing", "--continue-on-failure",
    ]  # fmt: skip
    user_id, _ = identify(role)
    ids = fuzz_ids.create(stack, user_id, role_of_user(role), owns_shops=role == MERCHANT)
    with tempfile.NamedTemporaryFile("r") as counts:
        env = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{LAYER}",
            "SCHEMATHESIS_HOOKS": "tests.e2e.contract_hooks",
            STACK: str(options.dir.resolve()),
            ROLE: role,
            IDS: json.dumps(ids),
            COUNTS: counts.name,
        }
        completed = subprocess.run(command, env=env, cwd=ROOT, check=False)
        statuses, wrong = json.load(counts)
    return Outcome(Counter(statuses), Counter(wrong), completed.returncode == 0 and not wrong)


def format_row(role: str, outcome: Outcome) -> list[str]:
    """Return the row of a role in the table."""
    return [
        role or "user, admin",
        f"{outcome.statuses.total():,}",
        ", ".join(f"{status}: {count:,}" for status, count in sorted(outcome.statuses.items())),
        f"{outcome.wrong.total():,}",
        "passed" if outcome.passed else "failed",
    ]


def make_table(rows: Sequence[Sequence[str]]) -> Table:
    """Return the table of all roles."""
    table = Table(*HEADINGS)
    for row in rows:
        table.add_row(*row)
    return table


if __name__ == "__main__":
    sys.exit(main())
