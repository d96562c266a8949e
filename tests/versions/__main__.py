"""``python -m tests.versions``: two versions on one Redis, one MySQL and one set of queues.

  python -m tests.versions                          the baseline beside the working tree, once
  python -m tests.versions --seconds 600            again with other traffic, for ten minutes
  python -m tests.versions --commit v0.2.0          another earlier version

Prints each problem with its phase, and the values in Redis that only one version read. Exit status
1 for any problem.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from local.paths import ROOT, LocalError
from local.stack import servers
from tests.versions import trees
from tests.versions.deployment import NEW, OLD, open_deployment
from tests.versions.rollout import find_one_sided_queues, roll_out
from tests.versions.traffic import Traffic
from tests.versions.values import Values, describe, monitoring


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
    args = parser.parse_args(argv)
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
            while True:
                problems = play(redis.url, mysql.url, old, seed)
                for problem in problems:
                    print(f"  {problem}", flush=True)
                failed += bool(problems)
                seed += 1
                if time.monotonic() >= until_s:
                    break
    except LocalError as error:
        print(f"plaza: {error}", file=sys.stderr)
        return 1
    print(f"{seed - args.seed} runs, {failed} with problems")
    return int(failed > 0)


def play(redis_url: str, mysql_url: str, old: Path, seed: int) -> list[str]:
    """Play a deploy and a rollback once, in new processes. Returns the problems."""
    began_s, values = time.monotonic(), Values()
    with (
        monitoring(redis_url, values),
        open_deployment(redis_url, mysql_url, old, ROOT, seed=seed) as deployment,
    ):
        roll_out(Traffic(deployment))
        problems = [*deployment.problems, *find_one_sided_queues(deployment)]
        consumed = deployment.consumed.total()
    problems += describe(values.find_missing((OLD, NEW)))
    print(
        f"seed {seed}: {len(problems)} problems, {consumed} messages consumed, "
        f"{len(values.written)} kinds of values, {time.monotonic() - began_s:.0f} s",
        flush=True,
    )
    return problems


if __name__ == "__main__":
    sys.exit(main())
