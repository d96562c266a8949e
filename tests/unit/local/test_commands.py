"""Arguments and messages of commands."""

from pathlib import Path

import pytest

from cli.commands import run
from cli.paths import CommandError
from local.__main__ import build_parser
from local.stack import packages
from local.stack.logs import find_function
from local.stack.stack import Stack
from local.stack.tokens import parse_users

FUNCTIONS = {"SaveReactions": "plaza-SaveReactions-1", "ReactionsApi": "plaza-ReactionsApi-2"}


def test_user_option_is_an_id_or_a_range() -> None:
    assert parse_users("7") == [7]
    assert parse_users("7-9") == [7, 8, 9]


@pytest.mark.parametrize("text", ["", "x", "0", "9-7", "-3", "1-", "7 8", "1-99999999"])
def test_other_values_of_user_are_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--user"):
        parse_users(text)


@pytest.mark.parametrize("asked", ["SaveReactions", "save_reactions", "save"])
def test_function_is_found_by_part_of_its_name(asked: str) -> None:
    assert find_function(FUNCTIONS, asked) == "SaveReactions"


@pytest.mark.parametrize("asked", ["reactions", "nothing"])
def test_ambiguous_name_lists_all_functions(asked: str) -> None:
    with pytest.raises(CommandError, match="SaveReactions, ReactionsApi, redis"):
        find_function(FUNCTIONS, asked)


def test_commands_report_that_no_stack_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(build_parser(), ["--dir", str(tmp_path / "none"), "status"]) == 1
    assert "make run" in capsys.readouterr().err


def test_down_without_a_stack_succeeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build_parser(), ["--dir", str(tmp_path / "none"), "down"]) == 0
    assert capsys.readouterr().out == "no stack was running\n"


def test_incomplete_directory_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stack.json").write_text('{"base_url": ')
    assert run(build_parser(), ["--dir", str(tmp_path), "token", "--user", "7"]) == 1
    assert "is incomplete" in capsys.readouterr().err


def test_foreign_directory_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all of it")
    stack = Stack(tmp_path)
    with pytest.raises(CommandError, match="left unchanged"):
        stack.up()
    stack.down()
    assert (tmp_path / "thesis.txt").read_text() == "all of it"


def test_missing_programs_are_reported_with_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_binary", lambda name: None)
    monkeypatch.delenv("PLAZA_REDIS_URL", raising=False)
    monkeypatch.delenv("PLAZA_MYSQL_URL", raising=False)
    with pytest.raises(CommandError) as raised:
        packages.check_servers()
    for package in ("redis-server", "mariadb-server-core", "mariadb-client-core", "brew install"):
        assert package in str(raised.value)


def test_external_servers_need_no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_binary", lambda name: None)
    monkeypatch.setenv("PLAZA_REDIS_URL", "redis://elsewhere:6379")
    monkeypatch.setenv("PLAZA_MYSQL_URL", "mysql://u:p@elsewhere/plaza")
    packages.check_servers()
