"""The environment of an operator's command: a local stack, or the variables of the shell."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

import pytest

from cli.commands import run
from cli.paths import CommandError
from ops.__main__ import build_parser
from ops.environment import use_environment
from plaza.infra.runtime.errors import Unavailable


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Namespace:
    """The arguments for a stack whose settings are one variable."""
    monkeypatch.setenv("PLAZA_TEST_NAME", "of the shell")
    (tmp_path / "logs").mkdir()
    (tmp_path / "environment.json").write_text('{"PLAZA_TEST_NAME": "of the stack"}')
    return Namespace(dir=tmp_path, environment=False)


def test_a_command_uses_the_settings_of_the_local_stack(
    stack: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with use_environment(stack):
        assert os.environ["PLAZA_TEST_NAME"] == "of the stack"
        print("a line of the log")
    assert (stack.dir / "logs" / "operator.log").read_text() == "a line of the log\n"
    assert capsys.readouterr().out == ""


def test_a_command_uses_the_settings_of_the_shell(
    stack: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.environment = True
    with use_environment(stack):
        assert os.environ["PLAZA_TEST_NAME"] == "of the shell"
        print("a line of the log")
    assert tuple(capsys.readouterr()) == ("", "a line of the log\n")
    assert not (stack.dir / "logs" / "operator.log").exists()


def test_an_unavailable_store_ends_a_command(stack: Namespace) -> None:
    with pytest.raises(CommandError, match="MySQL is unavailable"), use_environment(stack):
        raise Unavailable("MySQL is unavailable; try again.")


def test_without_a_stack_a_command_names_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(build_parser(), ["--dir", str(tmp_path / "none"), "queues"]) == 1
    assert "`make run`, or add --environment" in capsys.readouterr().err
