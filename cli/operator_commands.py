"""Operator commands: what ``operate`` of ``python -m deploy`` and ``local`` runs."""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cli.paths import CommandError

Invoke = Callable[[Mapping[str, Any]], Any]
"""Invokes the function Operate with an event; returns its result."""


def add_operator_command(parser: argparse.ArgumentParser) -> None:
    """Add the operator command and its arguments to a parser."""
    parser.add_argument("name", metavar="command", help="what to do, such as list-transactions")
    parser.add_argument(
        "arguments", nargs="*", metavar="name=value", help="arguments of the command"
    )


def run_operator_command(invoke: Invoke, caller: str, args: argparse.Namespace) -> int:
    """Run an operator command and print its result, again and again until it has finished. Raises
    CommandError."""
    event = make_event(args.name, parse_arguments(args.arguments), caller)
    while True:
        result = invoke(event)
        print(json.dumps(result, indent=2, default=str))
        if result.get("finished") is not False:
            return 0


def make_event(command: str, arguments: Mapping[str, str], caller: str) -> dict[str, Any]:
    """Return the event of the function Operate."""
    return {"command": command, "arguments": dict(arguments), "caller": caller}


def parse_arguments(pairs: Sequence[str]) -> dict[str, str]:
    """Return the arguments of ``name=value`` texts. Raises CommandError."""
    if wrong := [pair for pair in pairs if not re.match(r"\w+=", pair)]:
        raise CommandError(f"{wrong[0]!r} is not name=value")
    return dict(pair.split("=", 1) for pair in pairs)
