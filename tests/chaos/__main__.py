"""``python -m tests.chaos``: run the failure matrix on the running stack, print and store it.

  python -m tests.chaos                        every cell and swap; writes docs/failures.md
  python -m tests.chaos redis-down sqs-slow    only these cells; writes nothing
  python -m tests.chaos swaps                  failovers there and back; writes docs/failures.md
  python -m tests.chaos swaps redis-swapping-quiet
  python -m tests.chaos pairs                  every pair of faults; writes docs/failures.md
  python -m tests.chaos pairs redis-down*sqs-refusing
  python -m tests.chaos deaths                 consumers of events that die; writes docs/failures.md

Exit status 1 when any result differs from tests/chaos/expectations.py.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NoReturn

from cli.paths import ROOT, CommandError
from tests.chaos import deaths, pairs, report, swaps
from tests.chaos.expectations import EXPECTED
from tests.chaos.faults import inject, inject_both
from tests.chaos.harness import Harness, set_up
from tests.chaos.pairs import Pair, PairResult, count_lost_promises, judge_pair
from tests.chaos.traffic import Orders, Workload
from tests.chaos.verdict import Row, judge
from tests.chaos.waits import find_audit_problems, wait_until_normal, wait_until_quiet

DIRECTORY = ROOT / ".local-chaos"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen cells."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("cells", nargs="*", help="redis-down, sqs-failing-over, ...")
    cells = parser.parse_args(argv).cells
    if cells[:1] == ["pairs"]:
        return play_pairs(cells[1:])
    if cells[:1] == ["swaps"]:
        return play_swaps(cells[1:])
    if cells[:1] == ["deaths"]:
        return play_deaths()
    expected = [find_cell(name) for name in cells] or list(EXPECTED)
    rows: list[Row] = []
    began_s = time.monotonic()
    for on_cluster in (False, True):
        if names := [name for name in expected if name.startswith("cluster ") is on_cluster]:
            rows += play_all(names, on_cluster)
    took_s = time.monotonic() - began_s
    text = report.render(rows, took_s)
    say(text)
    if len(expected) == len(EXPECTED):
        report.write(ROOT / "docs" / "failures.md", text)
    problems = sum(len(row.problems) for row in rows)
    say(f"{len(rows)} faults in {took_s:.0f} s, {problems} not as expected")
    failed = problems > 0
    if not cells:
        failed |= play_swaps(()) > 0
        failed |= play_deaths() > 0
    return int(failed)


def play_swaps(names: Sequence[str]) -> int:
    """Run the chosen failovers there and back. Returns 1 when one is not as expected."""
    known = {name.replace(" ", "-"): name for name in swaps.NAMES}
    if unknown := set(names) - known.keys():
        sys.exit(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    rows: list[Row] = []
    began_s = time.monotonic()
    with set_up(DIRECTORY, say) as harness:
        try:
            for name in names or known:
                rows.append(swaps.play(harness, known[name]))
                say_row(rows[-1])
        finally:
            harness.faults.undo_all()
    text = report.render_swaps(rows, time.monotonic() - began_s)
    say(text)
    if not names:
        report.write(ROOT / "docs" / "failures.md", text, report.BEGIN_SWAPS)
    return 1 if any(row.problems for row in rows) else 0


def play_deaths() -> int:
    """Let consumers of events die. Returns 1 when an event was lost."""
    began_s = time.monotonic()
    with set_up(DIRECTORY, say) as harness:
        result = deaths.play(harness)
    text = deaths.render(result, time.monotonic() - began_s)
    say(text)
    report.write(ROOT / "docs" / "failures.md", text, report.BEGIN_DEATHS)
    return int(bool(result.problems))


def play_pairs(names: Sequence[str]) -> int:
    """Run the chosen pairs. Returns 1 when a promise was lost or an answer was false."""
    playable, skipped = pairs.choose_pairs()
    known = {pair.slug: pair for pair in playable}
    if unknown := set(names) - known.keys():
        reasons = {pair.slug: reason for pair, reason in skipped.items()}
        sys.exit("; ".join(f"{n}: {reasons.get(n, 'no such pair')}" for n in sorted(unknown)))
    expected = [known[name] for name in names] or playable
    if not names:
        for pair, reason in skipped.items():
            say(f"not played: {pair}: {reason}")
    results: list[PairResult] = []
    began_s = time.monotonic()
    for on_cluster in (False, True):
        some = [pair for pair in expected if any("cluster" in item for item in pair) is on_cluster]
        if some:
            with set_up(DIRECTORY, say, redis_cluster=on_cluster) as harness:
                try:
                    for first, group in pairs.group(some):
                        results += play_group(harness, first, group)
                finally:
                    harness.faults.undo_all()
    took_s = time.monotonic() - began_s
    text = pairs.render(results, skipped if not names else {}, took_s)
    say(text)
    if not names:
        report.write(ROOT / "docs" / "failures.md", text, report.BEGIN_PAIRS)
    return 1 if any(result.problems for result in results) else 0


# A follow that fails while Redis is unavailable leaves its hold, for an hour (docs/limits.md).
HOLDS = "holds of user"


def play_group(harness: Harness, first: str, group: Sequence[Pair]) -> list[PairResult]:
    """Run the pairs of one first fault in turn, then compare all promises with MySQL."""
    if any(pairs.SWAPS & set(pair) for pair in group):
        harness.faults.replicate()
    operations = harness.open_pairs()
    problems: list[str] = []
    results: list[PairResult] = []
    with Workload(operations) as workload:
        well_s = time.monotonic()
        for pair in group:
            wait_until_normal(workload, operations, well_s, problems)
            for operation in operations:
                operation.phase = str(pair)
                operation.is_202_final = not pair.destroys_only_copy
            faults = [harness.faults.find(name) for name in pair.in_start_order]
            began_s, ended_s = inject_both(faults[0], faults[1], pairs.PAIR_S)
            well_s = ended_s
            wait_until_normal(workload, operations, ended_s, problems)
            now_s = time.monotonic()
            results.append(judge_pair(pair, operations, workload.samples, began_s, now_s))
            results[-1].problems += problems
            problems.clear()
            say(f"{pair}: {results[-1].labels}, well after {now_s - ended_s:.1f} s")
    for operation in operations:
        if isinstance(operation, Orders):
            problems += operation.click_again()
    quiet_s = wait_until_quiet(harness, operations, time.monotonic(), problems)
    problems += workload.errors + find_audit_problems(harness, ignored=HOLDS)
    count_lost_promises(results, operations, harness.rows)
    for problem in problems:
        results[-1].problems.append(f"after all of {first}: {problem}")
    lost = sum(result.lost for result in results)
    say(f"{first}: quiet after {quiet_s:.0f} s, {lost} lost")
    for result in results:
        for problem in result.problems:
            say(f"    ✗ {result.pair}: {problem}")
    return results


def find_cell(name: str) -> str:
    """Return ``redis failing-over`` for ``redis-failing-over``."""
    known = {cell.replace(" ", "-"): cell for cell in EXPECTED}
    if name not in known:
        sys.exit(f"there is no cell {name}; there are {', '.join(known)}")
    return known[name]


def play_all(names: Sequence[str], on_cluster: bool) -> Iterator[Row]:
    """Run faults in turn, on one stack."""
    with set_up(DIRECTORY, say, redis_cluster=on_cluster) as harness:
        try:
            for name in names:
                row = play(harness, name)
                say_row(row)
                yield row
        finally:
            harness.faults.undo_all()


def play(harness: Harness, name: str) -> Row:
    """Run one fault under load, and judge the answers and MySQL afterwards."""
    operations = harness.open_cell()
    fault = harness.faults.find(name)
    problems: list[str] = []
    with Workload(operations) as workload:
        at_s = time.monotonic()
        wait_until_normal(workload, operations, at_s, problems)
        began_s, ended_s, undone_s = inject(fault)
        wait_until_normal(workload, operations, undone_s, problems)
    for operation in operations:
        if isinstance(operation, Orders):
            problems += operation.click_again()
    quiet_s = wait_until_quiet(harness, operations, undone_s, problems)
    problems += workload.errors
    cells = [
        judge(
            name,
            item,
            workload.samples[item.name],
            began_s,
            ended_s,
            undone_s,
            *item.check(harness.rows),
        )
        for item in operations
    ]
    problems += find_audit_problems(harness)
    problems += [f"{cell.operation}: {problem}" for cell in cells for problem in cell.problems]
    return Row(name, fault.how, cells, quiet_s, os.getloadavg()[0], problems)


def say_row(row: Row) -> None:
    """Print the result of one fault."""
    say(report.line(row))
    for problem in row.problems:
        say(f"    ✗ {problem}")


def say(text: str) -> None:
    """Print a text at once."""
    print(text, flush=True)


def interrupt(signum: int, frame: object) -> NoReturn:
    """Interrupt the run, so that all started processes are ended."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    try:
        sys.exit(main())
    except CommandError as error:
        sys.exit(f"plaza: {error}")
