"""``queues``: messages of each queue, as ``GET /ops/queues`` reports them."""

import argparse
import contextlib
import json
import os
from collections.abc import Iterator

from rich.table import Table

from local.output import console
from local.paths import LocalError
from local.stack.stack import Stack


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Print each queue. Returns 1 when there are dead letters."""
    with act_as_operator(stack):
        from plaza import operations

        states = operations.read_queues()
    if args.json:
        print(json.dumps([state._asdict() for state in states], indent=2))
    else:
        columns = ("queue", "backlog", "in flight", "delayed", "oldest", "dead")
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, justify="left" if column == "queue" else "right")
        for state in states:
            oldest = "" if state.oldest_age_s is None else f"{state.oldest_age_s:,.0f} s"
            counts = (f"{count:,}" for count in (state.backlog, state.in_flight, state.delayed))
            dead = f"[red]{state.dead_letters:,}[/red]" if state.dead_letters else "0"
            table.add_row(state.name, *counts, oldest, dead)
        console.print(table)
    return 1 if any(state.dead_letters for state in states) else 0


@contextlib.contextmanager
def act_as_operator(stack: Stack) -> Iterator[None]:
    """Let ``plaza.operations`` in this process act on this stack, with its log beside the servers'.

    Raises LocalError for errors of Plaza.
    """
    os.environ.update(stack.environment())  # before plaza reads its settings, once
    from plaza.infra.errors import PlazaError

    log = stack.directory / "logs" / "operator.log"
    try:
        with log.open("a") as lines, contextlib.redirect_stdout(lines):
            yield
    except PlazaError as error:
        raise LocalError(str(error)) from None
