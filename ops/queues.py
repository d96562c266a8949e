"""``queues``: messages of each queue, as ``GET /ops/queues`` reports them."""

import argparse
import json
import time

from cli.output import console, new_table
from ops.environment import use_environment
from plaza.infra.queues.queue import QueueDown
from plaza.operate.operations import QueueState, queue_admin

PATIENCE_S = 10.0


def main(args: argparse.Namespace) -> int:
    """Print each queue. Returns 1 when there are dead letters."""
    with use_environment(args):
        states = read_queues()
    if args.json:
        print(json.dumps([state._asdict() for state in states], indent=2))
    else:
        table = new_table("queue", "backlog", "in flight", "delayed", "oldest", "dead")
        for state in states:
            oldest = "" if state.oldest_age_s is None else f"{state.oldest_age_s:,.0f} s"
            counts = (f"{count:,}" for count in (state.backlog, state.in_flight, state.delayed))
            table.add_row(state.name, *counts, oldest, format_dead(state.dead_letters))
        console.print(table)
    return 1 if any(state.dead_letters for state in states) else 0


def read_queues() -> list[QueueState]:
    """Return the state of each queue, asked again for 10 s while SQS is slow, as on a machine under
    load. Raises QueueDown."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return queue_admin.read_queues()
        except QueueDown:
            if time.monotonic() > end_s:
                raise
        time.sleep(0.5)


def format_dead(count: int) -> str:
    return f"[red]{count:,}[/red]" if count else "0"
