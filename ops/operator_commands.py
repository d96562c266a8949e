"""Operator commands in this process: the actions of ``webhooks`` and ``server-keys``."""

import argparse
import getpass
import inspect
import json
from typing import Any

from cli.operator_commands import make_event
from cli.output import new_table, wide_console
from ops.environment import use_environment
from plaza.operate.operator_commands import commands


def main(args: argparse.Namespace) -> int:
    """Run the command and print ``args.printed`` with values of its result."""
    result = _run(args)
    if args.printed:
        print(args.printed.format_map(result))
    return 0


def list_rows(args: argparse.Namespace) -> int:
    """Run the command and print the rows of its result. Returns 1 if one of them is disabled or
    has failed."""
    [rows] = _run(args).values()
    if getattr(args, "json", False):
        print(json.dumps(rows, indent=2))
    elif rows:
        table = new_table(*rows[0], left=list(rows[0]))
        for row in rows:
            table.add_row(*map(_format, row.values()))
        wide_console().print(table)
    return int(any(row.get("state") == "disabled" or row.get("failures") for row in rows))


def _run(args: argparse.Namespace) -> dict[str, Any]:
    """Run ``args.operator_command`` with the options that are its arguments."""
    name, options = args.operator_command, vars(args)
    with use_environment(args):
        known = commands.list_commands()
        parameters = inspect.signature(known[name].run).parameters if name in known else {}
        arguments = {
            key: _format(value) for key in parameters if (value := options.get(key)) is not None
        }
        return commands.run(make_event(name, arguments, f"ops:{getpass.getuser()}"))


def _format(value: object) -> str:
    """Return a value as a text: a list with commas, '' for None."""
    return ",".join(value) if isinstance(value, list) else "" if value is None else str(value)
