"""``python -m tests.mutants``: play mutants against the tests nearest to them.

  python -m tests.mutants                       all without a valid verdict; writes docs/mutants.md
  python -m tests.mutants reactions/gate lease  those whose names match one of these expressions
  python -m tests.mutants --jobs 4 --again      four at a time, also those with a verdict
  python -m tests.mutants --nearest             only the nearest tests; survivors are played again
  python -m tests.mutants --list                only list them, with their verdicts

Verdicts are stored in .local/mutants.json: a run continues where the one before ended, and plays
the mutants again whose file or tests have changed. Exit status 1 for a mutant that survived without
a reason, for an equivalent one that was killed, and for a test that fails without a mutant.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait

from tests.mutants import report
from tests.mutants.catalog import load_mutants
from tests.mutants.job import BROKEN, KILLED, SURVIVED, TIMEOUT, Verdict, serve
from tests.mutants.mutant import Mutant
from tests.mutants.results import Results


def main(argv: Sequence[str] | None = None) -> int:
    """Play the chosen mutants; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="regular expressions for names")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--again", action="store_true", help="also play those with a verdict")
    parser.add_argument("--nearest", action="store_true", help="only the nearest tests")
    parser.add_argument("--list", action="store_true", help="only list them")
    options = parser.parse_args(argv)
    chosen = [
        mutant
        for mutant in load_mutants()
        if not options.names or any(re.search(name, mutant.name) for name in options.names)
    ]
    if not chosen:
        parser.error(f"no mutant matches {' or '.join(options.names)}")
    results = Results()
    if not options.list:
        todo = [m for m in chosen if options.again or results.verdict_of(m) is None]
        began_s = time.monotonic()
        for mutant, verdict in play_all(todo, options.jobs, results, options.nearest):
            if verdict.outcome != SURVIVED or mutant.equivalent or not options.nearest:
                results.put(mutant, verdict)
            show(mutant, verdict)
        say(f"{len(todo)} of {len(chosen)} played in {time.monotonic() - began_s:.0f} s\n")
    return summarize(chosen, results, shows_all=options.list)


def summarize(chosen: Sequence[Mutant], results: Results, *, shows_all: bool) -> int:
    """Print the counts and what is wrong; write the page when all is right. Return the status."""
    counts: Counter[str] = Counter()
    wrong = 0
    for mutant in chosen:
        verdict = results.verdict_of(mutant)
        outcome = verdict.outcome if verdict else "not played"
        if verdict is not None and outcome == SURVIVED and mutant.equivalent:
            outcome = "equivalent"
        elif verdict is not None and mutant.equivalent:
            outcome = f"{outcome}, although equivalent"
        is_wrong = outcome not in (KILLED, TIMEOUT, "equivalent")
        wrong += is_wrong
        counts[outcome] += 1
        if shows_all or (is_wrong and verdict):
            show(mutant, verdict or Verdict("not played"))
            say(f"           {mutant.breaks}")
    for outcome, count in sorted(counts.items()):
        say(f"{outcome:<28} {count:>4}")
    if not wrong and len(chosen) == len(load_mutants()):
        report.write(chosen)
    return int(wrong > 0)


def play_all(
    mutants: Sequence[Mutant], jobs: int, results: Results, only_nearest: bool
) -> Iterator[tuple[Mutant, Verdict]]:
    """Play mutants, ``jobs`` at a time; yield each with its verdict."""
    waiting = list(reversed(mutants))
    with start_jobs(min(jobs, len(mutants))) as pipes:
        playing: dict[Connection, Mutant] = {}
        ready = set(pipes)
        while ready:
            for pipe in wait(list(ready)):
                assert isinstance(pipe, Connection)
                verdict = pipe.recv()  # the first reply is None: the job is ready
                if verdict is not None:
                    yield playing[pipe], verdict
                if waiting:
                    mutant = playing[pipe] = waiting.pop()
                    pipe.send((mutant, results.killer_of(mutant), only_nearest))
                else:
                    pipe.send(None)
                    ready.remove(pipe)


@contextmanager
def start_jobs(count: int) -> Iterator[list[Connection]]:
    """Start processes that play mutants; end them after the block."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in range(count):
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,))
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        yield pipes
    finally:
        for pipe in pipes:
            pipe.close()  # a job that waits for a mutant ends
        for process in processes:
            process.join()


def show(mutant: Mutant, verdict: Verdict) -> None:
    """Print the line of a mutant."""
    name = f"{mutant.name} (equivalent)" if mutant.equivalent else mutant.name
    found_by = f"{verdict.stage}: {verdict.test}" if verdict.test else ""
    mark = "!" if verdict.outcome in (BROKEN, SURVIVED) and not mutant.equivalent else " "
    say(f"{mark} {verdict.outcome:<9} {name:<52} {verdict.seconds:>6} s  {found_by}")


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
