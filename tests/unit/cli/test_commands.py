"""The command lines: their help, their modules, and how a command ends."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

import deploy.__main__
import local.__main__
import ops.__main__
import tools.__main__
from cli.commands import add_command, add_number, import_late, make_parser, run
from cli.paths import ROOT, CommandError
from tests.support.failures import failing

PROGRAMS = {
    "deploy": deploy.__main__.build_parser,
    "local": local.__main__.build_parser,
    "ops": ops.__main__.build_parser,
    "tools": tools.__main__.build_parser,
}


def commands_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of all commands, and of their actions."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from commands_of(command)


COMMANDS = [
    pytest.param(command, id=command.prog.removeprefix("python -m "))
    for build in PROGRAMS.values()
    for command in commands_of(build())
]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help_and_a_function(command: argparse.ArgumentParser) -> None:
    assert command.description
    assert all(action.help for action in command._actions if not action.choices), command.prog
    function = command.get_default("command")
    assert callable(function)
    if isinstance(function, partial):  # imported when it runs
        module, name = (*function.args, "main")[:2]
        assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("program", ["ops", "tools"])
def test_the_help_of_a_program_imports_no_command(program: str) -> None:
    """Some run in environments that lack the packages of others, as `tools lock`."""
    script = (
        f"import sys, {program}.__main__ as main; main.build_parser().format_help();"
        f"ours = ('{program}', 'plaza', 'local');"
        "print(*(name for name in sys.modules if name.split('.')[0] in ours))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(completed.stdout.split()) == {program, f"{program}.__main__"}


def parser_of(command: object) -> argparse.ArgumentParser:
    parser, commands = make_parser("program", "A program.")
    sub = add_command(commands, "act", command, "act")  # type: ignore[arg-type]
    add_number(sub, "--rate", 2.5, "acts a second")
    return parser


@pytest.mark.parametrize(("result", "status"), [(None, 0), (0, 0), (1, 1)])
def test_the_result_is_the_exit_status(result: int | None, status: int) -> None:
    seen = []

    def act(args: argparse.Namespace) -> int | None:
        seen.append(args.rate)
        return result

    assert run(parser_of(act), ["act", "--rate", "7"]) == status
    assert seen == [7.0]


@pytest.mark.parametrize(
    ("error", "status", "printed"),
    [
        (CommandError("start it first"), 1, "plaza: start it first\n"),
        (BrokenPipeError(), 0, ""),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_ends_a_command(
    error: BaseException, status: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(parser_of(failing(error)), ["act"]) == status
    assert capsys.readouterr().err == printed


def test_a_late_command_is_imported_when_it_runs() -> None:
    command = import_late("no.such.module:act")
    with pytest.raises(ModuleNotFoundError):
        command(argparse.Namespace())


def test_a_program_without_a_command_prints_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(parser_of(lambda args: 0), [])
    assert "usage: python -m program" in capsys.readouterr().err
