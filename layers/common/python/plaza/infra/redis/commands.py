"""Commands and runs of scripts, as they are passed to the client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from plaza.infra.redis.scripts import Script

Argument = str | int | float
# The last element of a command may be a function: name of the node -> the last arguments.
NodeArguments = Callable[[str], Sequence[Argument]]
Command = tuple[Argument | NodeArguments, ...]


class Call(NamedTuple):
    """One run of a script."""

    script: Script
    keys: Sequence[str]
    args: Sequence[Argument | NodeArguments]


# ``redis.run_all``, or a function that reads elsewhere.
RunAll = Callable[[Sequence[Call], Sequence[Command]], list[Any]]


def bind(command: Command, node: str) -> tuple[Argument, ...]:
    """Return the command with its arguments for ``node``."""
    last = command[-1]
    if callable(last):
        return (*command[:-1], *last(node))  # type: ignore[arg-type]
    return command  # type: ignore[return-value]


def key_of_command(command: Command) -> str | None:
    """Return the first key of a command, None if it has no key with a hash tag."""
    at = 3 if str(command[0]).startswith("EVAL") else 1
    key = str(command[at]) if len(command) > at else ""
    return key if key.startswith(("{", "auth{")) else None
