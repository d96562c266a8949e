"""Commands of ``python -m deploy``, ``local``, ``ops`` and ``tools``: parsers, and how they end."""

import argparse
import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from cli.paths import CommandError, add_layer_to_path

Command = Callable[[argparse.Namespace], int | None]
Commands = Any
"""The subparsers of a parser; argparse does not export their class."""


def make_parser(program: str, description: str | None) -> tuple[argparse.ArgumentParser, Commands]:
    """Return the parser of ``python -m PROGRAM``, and what its commands are added to."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    return parser, parser.add_subparsers(required=True, metavar="command")


def add_command(
    commands: Commands, name: str, command: Command | str, text: str
) -> argparse.ArgumentParser:
    """Add a command; return its parser, for its options.

    ``command``: a function whose result is the exit status, or its name for ``import_late``.
    """
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=import_late(command) if isinstance(command, str) else command)
    return parser


def add_flag(parser: argparse.ArgumentParser, name: str, text: str, *names: str) -> None:
    """Add an option without a value."""
    parser.add_argument(name, *names, action="store_true", help=text)


def add_number(parser: argparse.ArgumentParser, name: str, default: float, text: str) -> None:
    """Add an option of the type of ``default``."""
    text = f"{text} (default: {default:g})"
    parser.add_argument(name, type=type(default), default=default, help=text)


def import_late(target: str) -> Command:
    """Return ``module:function``, or ``main`` of ``module``, which is imported when it runs."""
    module, _, name = target.partition(":")
    return partial(_run_imported, module, name or "main")


def _run_imported(module: str, name: str, args: argparse.Namespace) -> int | None:
    command: Command = getattr(importlib.import_module(module), name)
    return command(args)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit status: 1 for a CommandError, 130 for an interrupt."""
    add_layer_to_path()
    args = parser.parse_args(argv)
    command: Command = args.command
    try:
        return int(command(args) or 0)
    except CommandError as error:
        print(f"plaza: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130


def run_program(parser: argparse.ArgumentParser) -> NoReturn:
    """Run the command of this process, which SIGTERM and SIGHUP interrupt, and exit."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    sys.exit(run(parser))


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
