"""``python -m bench [name ...] [--quick] [--json]``: print figures beside limits and peers."""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import NAMES, stack, storage
from bench.figures import Figure, format_number
from bench.harness import Harness, start_harness
from cli.output import wide_console
from cli.paths import CommandError

BENCHES: dict[str, Callable[[Harness], list[Figure]]] = {
    name: importlib.import_module(f"bench.{name.replace('-', '_')}").measure for name in NAMES
}
STACK = "stack"  # only by name: it starts a whole stack, which takes a minute
_REACHED = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}


def main(argv: Sequence[str]) -> int:
    """Measure and print. A missed goal is no error: on a busy machine it may be chance."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(BENCHES)} or {STACK}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, less precise")
    parser.add_argument("--json", action="store_true", help="one JSON array instead of a table")
    of_consumer = parser.add_argument_group("consumer")
    of_consumer.add_argument(
        "--latency", type=float, metavar="MS", help="of each round trip to MySQL; only this is run"
    )
    of_consumer.add_argument(
        "--against", type=Path, metavar="PATH", help="another checkout to measure in turns"
    )
    of_consumer.add_argument("--rounds", type=int, default=3, help="of which medians are printed")
    options = parser.parse_args(argv)
    if options.latency is not None:
        if options.names != ["consumer"]:
            parser.error("--latency is of `consumer` alone")
        BENCHES["consumer"] = partial(
            storage.measure,
            latency_ms=options.latency,
            against=options.against and options.against.resolve(),
            rounds=options.rounds,
        )
    if unknown := set(options.names) - {*BENCHES, STACK}:
        parser.error(f"unknown: {', '.join(sorted(unknown))} ; choose from {', '.join(BENCHES)}")

    load = os.getloadavg()[0]
    progress, figures, failed = Console(stderr=True), [], False
    names = [name for name in options.names or BENCHES if name != STACK]
    try:
        if STACK in options.names:
            with progress.status(f"measuring: {STACK}"):
                figures += stack.measure(quick=options.quick)
        if names:
            with (
                progress.status("starting Redis and MariaDB") as status,
                start_harness(options.quick) as harness,
            ):
                for name in names:
                    status.update(f"measuring: {name}")
                    try:
                        figures += BENCHES[name](harness)
                    except Exception as error:  # the others are measured
                        if not isinstance(error, CommandError):
                            progress.print_exception()
                        progress.print(f"[red]{name}: {error}[/]")
                        failed = True
    except CommandError as error:
        progress.print(f"[red]{error}[/]")
        return 1
    if options.json:
        print(json.dumps([figure.to_dict() for figure in figures], indent=2))
    else:
        wide_console().print(table_of(figures, load))
    return int(failed)


def table_of(figures: Sequence[Figure], load: float) -> Table:
    processors = os.cpu_count() or 1
    busy = f"{load:.1f} processes ran on {processors} processors before it began"
    if load > processors / 2:
        busy += ": compare ratios, not values"
    table = Table(title="Plaza, measured on this machine", title_justify="left", caption=busy)
    table.add_column("figure", no_wrap=True)
    for heading in ("measured", "compared with, same run", "ratio", "goal"):
        table.add_column(heading, justify="right")
    table.add_column("reached")
    for figure in figures:
        peer = figure.peer
        table.add_row(
            figure.name,
            f"{format_number(figure.value)} {figure.unit}".strip(),
            f"{peer.name}: {format_number(peer.value)}" if peer else "",
            f"{figure.ratio:.2f} x" if figure.ratio is not None else "",
            str(figure.goal) if figure.goal else "",
            _REACHED[figure.reached],
            style=None if figure.goal else "dim",
        )
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
