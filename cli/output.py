"""Output of commands: tables, JSON, and progress."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NamedTuple, Protocol, TypeVar

from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from cli.paths import CommandError

console = Console(highlight=False)


class Report(Protocol):
    """Result of a command. ``clean``: nothing is wrong."""

    @property
    def clean(self) -> bool:
        """Return whether the exit status is 0."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""


Found = TypeVar("Found", bound=Report)
Options = TypeVar("Options")


def require_positive(args: argparse.Namespace, *names: str) -> None:
    """Raise CommandError for an option that is set and not above 0."""
    for name in names:
        if getattr(args, name) is not None and getattr(args, name) <= 0:
            raise CommandError(f"--{name} must be above 0")


def read_options(args: argparse.Namespace, options: type[Options], **more: Any) -> Options:
    """Return ``options`` with the fields that ``args`` has, and ``more``."""
    names = {field.name for field in fields(options)}  # type: ignore[arg-type]
    return options(**{name: value for name, value in vars(args).items() if name in names} | more)


def progress_console(args: argparse.Namespace) -> Console:
    return Console(stderr=True, highlight=False) if args.json else console


def print_report(
    args: argparse.Namespace, report: Found, show: Callable[[Found, Console], None]
) -> int:
    """Print a report. Returns the exit status: 1 unless it is clean."""
    if args.json:
        print(json.dumps(report.to_json()))
    else:
        show(report, console)
    return 0 if report.clean else 1


def wide_console() -> Console:
    """Return a console that has room for long keys when the output is not a terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 150)


def new_table(*columns: str, left: Collection[str] = ("",)) -> Table:
    """Return a plain table: the first column and those in ``left`` to the left, others right."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        justify: JustifyMethod = "left" if not index or column in left else "right"
        table.add_column(column, justify=justify, overflow="fold")
    return table


def new_summary(*rows: tuple[str, str, str | bool]) -> Table:
    """Return a table without a header: name, text, and a mark or whether the row is good."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_column(no_wrap=True)
    for name, text, good in rows:
        table.add_row(name, text, mark(good) if isinstance(good, bool) else good)
    return table


def mark(good: bool) -> str:
    return "[green]✓[/green]" if good else "[red]✗[/red]"


class Percentiles(NamedTuple):
    """Of latencies, in milliseconds."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float

    def __str__(self) -> str:
        unit, by = ("s", 1000) if self.max_ms >= 1000 else ("ms", 1)
        pairs = zip(("p50", "p90", "p99", "max"), self, strict=True)
        return ", ".join(f"{name} {value / by:,.1f}" for name, value in pairs) + f" {unit}"


def read_percentiles(values_s: Sequence[float]) -> Percentiles:
    """Return the percentiles of durations in seconds; zeros without any."""
    if len(values_s) < 2:
        return Percentiles(*[round(sum(values_s) * 1000, 2)] * 4)
    cuts = statistics.quantiles(values_s, n=100, method="inclusive")
    values = (cuts[49], cuts[89], cuts[98], max(values_s))
    return Percentiles(*(round(value * 1000, 2) for value in values))


@contextmanager
def show_progress(
    name: str, unit: str, total: int, out: Console
) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar. Yields a function that takes the number done and a note."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task(name, total=total, note="")

        def update(finished: int, note: str = "") -> None:
            speed = f"{progress.tasks[0].speed or 0:,.0f} {unit}/s"
            progress.update(task, completed=finished, note=f"{speed} {note}".rstrip())

        yield update


@contextmanager
def show_step(name: str) -> Iterator[None]:
    """Show that a step runs, then its duration."""
    began = time.monotonic()
    try:
        with console.status(name):
            yield
    except BaseException:
        console.print(f"[red]✗[/red] {name}")
        raise
    console.print(f"[green]✓[/green] {name} [dim]{time.monotonic() - began:.1f} s[/dim]")
