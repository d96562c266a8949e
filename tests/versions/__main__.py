"""``python -m tests.versions``: two versions on one Redis, one MySQL and one set of queues.

  python -m tests.versions                          the baseline beside the working tree, once
  python -m tests.versions --seconds 600            again with other traffic, for ten minutes
  python -m tests.versions --commit v0.2.0          another earlier version
  python -m tests.versions --use-cases "PUT /"      use cases of tests/faults whose names match

A use case is prepared by one version and carried out by the other, in both directions.

Prints each problem with its phase, and the values in Redis that only one version read. Exit status
1 for any problem.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from cli.paths import ROOT, CommandError
from local.stack import servers
from tests.versions import SUSPENDED, trees
from tests.versions.deployment import open_deployment
from tests.versions.rollout import roll_out_until_shared
from tests.versions.traffic import Traffic
from tests.versions.use_cases import DIRECTIONS, list_use_cases, play_use_case, prepare
from tests.versions.values import Values


def main(argv: Sequence[str] | None = None) -> int:
    """Play deploys and rollbacks; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=0, help="begin no run after so long")
    parser.add_argument("--commit", default=trees.read_baseline(), help="the earlier version")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--use-cases", help="a regular expression for names; all: ''")
    args = parser.parse_args(argv)
    if SUSPENDED:
        print(SUSPENDED)
        return 0
    until_s, seed, failed = time.monotonic() + args.seconds, args.seed, 0
    try:
        old = trees.extract(args.commit)
        with (
            tempfile.TemporaryDirectory(prefix="plaza-versions-") as directory,
            servers.run_server(servers.prepare_redis(Path(directory) / "redis")) as redis,
            servers.run_server(
                servers.prepare_mysql(Path(directory) / "mysql", for_tests=True)
            ) as mysql,
        ):
            if args.use_cases is not None:
                return play_use_cases(redis.url, mysql.url, old, args.use_cases)
            while True:
                failed += play(redis.url, mysql.url, old, seed)
                seed += 1
                if time.monotonic() >= until_s:
                    break
    except CommandError as error:
        print(f"plaza: {error}", file=sys.stderr)
        return 1
    print(f"{seed - args.seed} runs, {failed} with problems")
    return int(failed > 0)


def play(redis_url: str, mysql_url: str, old: Path, seed: int) -> bool:
    """Play a deploy and a rollback, in new processes, and print the problems. Returns whether there
    were any."""
    began_s, values = time.monotonic(), Values()
    with open_deployment(redis_url, mysql_url, old, ROOT, seed=seed) as deployment:
        problems = roll_out_until_shared(Traffic(deployment), redis_url, values)
        consumed = deployment.consumed.total()
    show(
        f"seed {seed}: {len(problems)} problems, {consumed} messages consumed,"
        f" {len(values.written)} kinds of values, {time.monotonic() - began_s:.0f} s",
        problems,
    )
    return bool(problems)


def play_use_cases(redis_url: str, mysql_url: str, old: Path, pattern: str) -> int:
    """Play use cases in both directions, and print the problems. Returns the exit status."""
    failed = 0
    with open_deployment(redis_url, mysql_url, old, ROOT) as deployment:
        cases = [case for case in list_use_cases(deployment) if re.search(pattern, case.name)]
        base = prepare(deployment)
        for case, (first, second) in product(cases, DIRECTIONS):
            problems = play_use_case(deployment, case, base, first, second)
            show(f"{case.name}, {first} then {second}: {len(problems)} problems", problems)
            failed += bool(problems)
    print(f"{len(cases)} use cases in two directions, {failed} runs with problems")
    return int(failed > 0)


def show(line: str, problems: Sequence[str]) -> None:
    """Print a line and the problems below it, at once."""
    print("\n".join([line, *(f"  {problem}" for problem in problems)]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
