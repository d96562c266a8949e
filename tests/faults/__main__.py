"""``python -m tests.faults``: every call of every use case, faulted in every mode.

  python -m tests.faults                                    all of it
  python -m tests.faults --use-case checkins                use cases whose names match this
  python -m tests.faults --mode killed --minutes 10         one mode, for ten minutes at most

Exit status 1 for a failure that tests/faults/expected.py does not list, and for a listed one that
does not occur.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from local.stack import servers
from tests.faults.expected import find_expected
from tests.faults.harness import open_harness
from tests.faults.play import Player
from tests.faults.transport import Mode
from tests.faults.use_cases import USE_CASES, UseCase


def main(argv: Sequence[str] | None = None) -> int:
    """Play the chosen use cases, and print the failures and the counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--use-case", default="", help="a regular expression for names")
    parser.add_argument("--mode", choices=[mode.value for mode in Mode], action="append")
    parser.add_argument("--minutes", type=float, default=60, help="stop after so long")
    parser.add_argument("--share", default="1/1", help="2/3: the second of three shares of it")
    parser.add_argument("--calls", action="store_true", help="only list the calls")
    args = parser.parse_args(argv)
    modes = [Mode(mode) for mode in args.mode or Mode]
    cases = [case for case in USE_CASES if re.search(args.use_case, case.name)]
    if not cases:
        parser.error(f"{args.use_case!r} is in the name of no use case")
    share, _, shares = args.share.partition("/")
    cases = cases[int(share) - 1 :: int(shares)]
    until_s = time.monotonic() + args.minutes * 60
    with tempfile.TemporaryDirectory(prefix="plaza-faults-") as directory:
        redis_server = servers.prepare_redis(Path(directory) / "redis")
        mysql_server = servers.prepare_mysql(Path(directory) / "mysql", for_tests=True)
        with (
            servers.run_server(redis_server),
            servers.run_server(mysql_server),
            open_harness(redis_server.url, mysql_server.url) as harness,
        ):
            return play_all(Player(harness), cases, modes, until_s, only_calls=args.calls)


def play_all(
    player: Player,
    cases: Sequence[UseCase],
    modes: Sequence[Mode],
    until_s: float,
    *,
    only_calls: bool,
) -> int:
    """Play the use cases in order. Returns the exit status."""
    outcomes: Counter[str] = Counter()
    by_mode: Counter[Mode] = Counter()
    began_s = time.monotonic()
    for case in cases:
        began_case_s = time.monotonic()
        calls = player.reference(case).calls
        if only_calls:
            say(f"{case.name}: {len(calls)} calls")
            for index, call in enumerate(calls):
                say(f"  {index} {call}")
            continue
        outcome: Counter[str] = Counter()
        for triple in player.triples(case, modes):
            if time.monotonic() > until_s:
                outcome["not played"] += 1
                continue
            problems = player.play(triple)
            expected = find_expected(triple)
            key = ("expected failures" if expected else "failed") if problems else "passed"
            if player.harness.transport.reached is None:
                key = "not reached"
            outcome[key] += 1
            by_mode[triple.fault.mode] += 1
            if problems:
                say(f"{'EXPECTED' if expected else 'FAILED'} {triple.id}")
                for problem in problems:
                    say(f"    {problem[:600]}")
        outcomes += outcome
        took_s = time.monotonic() - began_case_s
        shown = ", ".join(f"{count} {name}" for name, count in sorted(outcome.items()))
        say(f"{case.name}: {len(calls)} calls, {shown}, {took_s:.0f} s")
    say(
        f"\n{len(cases)} use cases, {by_mode.total()} triples in {time.monotonic() - began_s:.0f} s"
    )
    for mode in modes:
        say(f"  {mode:<14} {by_mode[mode]:>6,}")
    for name, count in sorted(outcomes.items()):
        say(f"  {name:<18} {count:>6,}")
    return 1 if outcomes["failed"] else 0


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
