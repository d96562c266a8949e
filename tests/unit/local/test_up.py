"""What a started stack prints, and when the demo crowd plays."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from cli.commands import run
from cli.paths import CommandError
from local import up
from local.__main__ import build_parser
from local.stack.ports import claim_port
from local.stack.stack import Stack


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    stack = Stack(tmp_path)
    stack.base_url, stack.web_url = "http://127.0.0.1:50123", "http://127.0.0.1:50124"
    (tmp_path / "logs").mkdir()
    return stack


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Replace the screen by a file of 80 columns."""
    with (tmp_path / "screen").open("w") as file:
        monkeypatch.setattr(up, "console", Console(file=file, width=80, highlight=False))
        yield tmp_path / "screen"


def read(screen: Path) -> str:
    up.console.file.flush()
    return screen.read_text()


def test_commands_to_paste_sign_in_and_follow(stack: Stack, screen: Path) -> None:
    up.show_welcome(stack, detached=False)
    commands = (stack.directory / up.COMMANDS).read_text()
    for part in (
        "CHALLENGE=$(curl -s http://127.0.0.1:50123/auth/codes -H 'Content-Type: application/json'"
        """ -d '{"phone": "+14155550123"}' | cut -d '"' -f 4)""",
        f"-m local --dir {stack.directory} sms +14155550123",
        """-d '{"challenge": "'$CHALLENGE'", "code": "'$CODE'"}'""",
        f"-m local --dir {stack.directory} token --user 7",
        "/users/9000001/followers/me",
    ):
        assert part in commands


def test_three_urls_in_a_box_end_the_screen(
    stack: Stack, screen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stack.directory)
    up.show_welcome(stack, detached=False)
    lines = read(screen).splitlines()
    assert len(lines) == 5
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("╭")
    assert lines[-1].startswith("╰")
    for line, url in zip(
        lines[1:4],
        ("http://127.0.0.1:50124/", "http://127.0.0.1:50124/console/", "http://127.0.0.1:50123"),
        strict=True,
    ):
        assert f" {url} " in line
    assert "Ctrl-C stops it" in lines[-1]
    assert "make fresh" in lines[-1]


@pytest.mark.parametrize("is_empty", [True, False])
def test_the_demo_plays_on_empty_stores_only_and_reports_to_a_file(
    stack: Stack, screen: Path, monkeypatch: pytest.MonkeyPatch, is_empty: bool
) -> None:
    def play(stack: Stack, out: Console) -> str:
        out.print("a long table")
        return "a town"

    @contextmanager
    def never(stack: Stack) -> Iterator[None]:
        yield

    monkeypatch.setattr(up, "is_empty", lambda stack: is_empty)
    monkeypatch.setattr(up, "_load_demo", lambda: SimpleNamespace(play=play))
    monkeypatch.setattr(up, "interrupt_when_stopped", never)
    up.play_demo(stack)
    report = stack.directory / "logs" / "demo.txt"
    assert "a long table" not in read(screen)
    assert (report.exists() and report.read_text() == "a long table\n") is is_empty
    assert ("a town" if is_empty else "no demo crowd") in read(screen)


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(CommandError, match=f"{port} is no port; choose one from 1 to 65535"):
        claim_port(port)


def test_a_wrong_port_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # it is for the rest of the process
    arguments = ["--dir", str(tmp_path / "new"), "up", "--port", "99999"]
    assert run(build_parser(), arguments) == 1
    assert capsys.readouterr().err == "plaza: 99999 is no port; choose one from 1 to 65535\n"
