"""What a stack keeps between its runs, without its servers."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from cli.commands import run
from cli.paths import ROOT, CommandError
from local.__main__ import build_parser
from local.stack import kept
from local.stack.kept import Kept
from local.stack.stack import Stack

FILE = Path(__file__)
SERVERS = {"mysql": "10.11.14", "redis": "7.0.15"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the directory of a stopped stack that keeps its data."""
    for name in ("mysql", "redis", "archive"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text("all of it")
    (tmp_path / "messages.json").write_text("{}")
    (tmp_path / "lock").touch()
    Kept(dict(SERVERS), {"AuthSecret": "s"}, {"api": 5000}).save(tmp_path)
    return tmp_path


def names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()} - {"lock", "end-lock", "logs"}


def test_a_stop_leaves_the_data_and_deletes_the_rest(directory: Path) -> None:
    for name in ("build", "processes", "tmp"):
        (directory / name).mkdir()
    Stack(directory).down()
    assert names(directory) == set(kept.NAMES)
    assert (directory / "mysql" / "data").read_text() == "all of it"


def test_fresh_deletes_the_data(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--dir", str(directory), "fresh"]
    assert run(build_parser(), arguments) == 0
    assert names(directory) == set()
    assert run(build_parser(), arguments) == 0
    assert capsys.readouterr().out == "deleted the data\nthere was no data\n"


def test_fresh_leaves_the_directory_of_no_stack(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all of it")
    assert run(build_parser(), ["--dir", str(tmp_path), "fresh"]) == 0
    assert (tmp_path / "thesis.txt").read_text() == "all of it"


def test_a_start_that_keeps_nothing_refuses_to_delete_the_data(directory: Path) -> None:
    """Such as one of the tests or of a measurement."""
    with pytest.raises(CommandError, match="has data that this start would delete"):
        Stack(directory).up()
    assert names(directory) == set(kept.NAMES)


@pytest.mark.parametrize("part", ["mysql", "redis"])
def test_files_of_a_newer_server_are_refused(part: str) -> None:
    written = Kept(SERVERS | {part: "99.1.0"})
    with pytest.raises(CommandError, match=r"written by .* 99\.1\.0.*`make fresh`"):
        written.check(SERVERS)
    written.check(SERVERS | {part: "99.1.7"})
    written.check(SERVERS | {part: "100.0.0"})


def test_other_servers_than_before_are_refused() -> None:
    with pytest.raises(CommandError, match=r"another choice of servers \(redis\).*PLAZA_REDIS_URL"):
        Kept(SERVERS).check({"mysql": "10.11.14"})


def test_another_layout_is_refused(directory: Path) -> None:
    record = json.loads((directory / kept.FILE).read_text())
    (directory / kept.FILE).write_text(json.dumps(record | {"layout": 2, "more": 1}))
    with pytest.raises(CommandError, match="layout 2, not 1"):
        Kept.load(directory)


def test_what_is_kept_is_readable_for_its_owner_only(directory: Path) -> None:
    assert (directory / kept.FILE).stat().st_mode & 0o077 == 0
    assert Kept.load(directory) == Kept(SERVERS, {"AuthSecret": "s"}, {"api": 5000})


def message(body: str, in_s: float = 0.0, received: int = 0) -> dict[str, object]:
    at_s = time.time() + in_s
    return {"Body": body, "MessageAttributes": {}, "ReceiveCount": received, "VisibleAt": at_s}


def test_messages_are_sent_again_in_batches_that_sqs_takes() -> None:
    large = "x" * (kept.MAX_BATCH_BYTES - 10)
    sent = [message(str(n)) for n in range(23)] + [message(large), message(large)]
    batches = list(kept._make_batches(sent))
    assert [len(batch) for batch in batches] == [10, 10, 4, 1]
    assert [entry["MessageBody"] for batch in batches for entry in batch] == [
        m["Body"] for m in sent
    ]
    assert all(len({entry["Id"] for entry in batch}) == len(batch) for batch in batches)


def test_a_message_that_was_not_due_keeps_its_delay_and_a_received_one_is_due() -> None:
    [[waiting, received, late]] = kept._make_batches(
        [message("a", 100), message("b", 100, received=1), message("c", 5000)]
    )
    assert 95 <= waiting["DelaySeconds"] <= 100
    assert "DelaySeconds" not in received
    assert late["DelaySeconds"] == kept.MAX_DELAY_S


def test_neither_tests_nor_ci_use_a_directory_that_keeps_data() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    commands = re.findall(r"^(?:run|start)(?: nice)? make (.*)", ci, re.M)
    targets = {word for command in commands for word in command.split()}
    assert "test" in targets
    assert targets.isdisjoint({"run", "fresh", "clean"})
    assert re.findall(r"-m local (\w+)", ci) == ["down"]
    for path in (ROOT / "tests").rglob("*.py"):
        assert re.search(r"\bStack\(\)|keep=True", path.read_text()) is None or path == FILE, path
