"""The environment that a command works on: the local stack, or the one that this shell names."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress

from cli.paths import CommandError
from plaza.infra.runtime.errors import PlazaError
from plaza.infra.runtime.settings import BadSettings


def declare_types(args: argparse.Namespace) -> None:
    """Let the modules of ``plaza``, which read it once, have the kinds and types of the stack."""
    if args.environment:
        return
    with suppress(FileNotFoundError):
        stored = json.loads((args.dir / "environment.json").read_text())
        for name in ("PLAZA_KINDS", "PLAZA_TARGET_TYPES"):
            os.environ[name] = stored.get(name, "{}")


@contextmanager
def use_environment(args: argparse.Namespace) -> Iterator[None]:
    """Let ``plaza`` in this process use the environment. Raises CommandError for errors of Plaza.

    Its log lines go to ``logs/operator.log`` of the local stack, else to standard error.
    """
    with ExitStack() as running:
        log = sys.stderr
        if not args.environment:
            try:
                stored = json.loads((args.dir / "environment.json").read_text())
                log = running.enter_context((args.dir / "logs" / "operator.log").open("a"))
            except FileNotFoundError:
                raise CommandError(
                    "no stack is running; start one with `make run`, or add --environment"
                ) from None
            os.environ.update(stored)  # plaza reads its settings once
        running.enter_context(redirect_stdout(log))
        try:
            yield
        except (PlazaError, BadSettings) as error:
            raise CommandError(str(error)) from None
