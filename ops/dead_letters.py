"""``dlq``: list, show, redrive and purge dead letters."""

import argparse
import json
from datetime import UTC, datetime

from cli.output import console, new_table
from ops.environment import use_environment
from ops.queues import format_dead, read_queues
from plaza.operate.operations import queue_admin

OPERATOR = "ops"


def list_queues(args: argparse.Namespace) -> int:
    with use_environment(args):
        states = read_queues()
    table = new_table("queue", "dead")
    for state in states:
        table.add_row(state.name, format_dead(state.dead_letters))
    console.print(table)
    return 1 if any(state.dead_letters for state in states) else 0


def show(args: argparse.Namespace) -> int:
    with use_environment(args):
        letters = queue_admin.list_dead_letters(_queue(args), args.limit, operator_id=OPERATOR)
    for letter in letters:
        names = ("id", "receives", "cause", "request_id", "body")
        sent_at = datetime.fromtimestamp(letter.sent_ms / 1000, UTC).isoformat()
        values = {"sent_at": sent_at} | {name: getattr(letter, name) for name in names}
        print(json.dumps(values, ensure_ascii=False))
    return 0


def redrive(args: argparse.Namespace) -> int:
    """Redrive dead letters, in as many calls as needed. Returns 1 when some requested ones stay."""
    with use_environment(args):
        dead = {state.name: state.dead_letters for state in read_queues()}
        ids, moved = args.id or None, 0
        # At most as many as there were: a message that fails again would be moved for ever.
        limit = min(args.limit or 10**9, len(ids) if ids else dead.get(_queue(args), 0) or 1)
        while True:
            result = queue_admin.redrive(_queue(args), OPERATOR, ids, limit - moved)
            moved += result.moved
            ids = list(result.missing) if ids else None
            if not result.moved or result.backlog_too_long or moved >= limit:
                break
    print(f"{moved:,} sent back, {result.remaining:,} dead")
    if result.backlog_too_long:
        print("stopped: the queue has a long backlog")
    for message_id in result.missing:
        print(f"not found: {message_id}")
    return 1 if result.backlog_too_long or result.missing else 0


def purge(args: argparse.Namespace) -> int:
    """Delete the dead letters with the given ids. Returns 1 when some were not found."""
    with use_environment(args):
        result = queue_admin.purge(_queue(args), OPERATOR, args.id)
    print(f"{result.purged:,} deleted, {result.remaining:,} dead")
    for message_id in result.missing:
        print(f"not found: {message_id}")
    return 1 if result.missing else 0


def _queue(args: argparse.Namespace) -> str:
    return str(args.queue).removesuffix("_dlq") if args.queue != "orders_dlq" else "orders_dlq"
