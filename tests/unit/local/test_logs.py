"""Logs of functions are read in order of time."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pymysql.err import OperationalError

from local.stack import logs
from local.stack.stack import Stack
from tests.support.failures import failing


def write(directory: Path, function: str, text: str) -> None:
    folder = directory / "logs" / "functions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{function}.log").write_text(text)


def test_lines_without_a_time_have_that_of_the_line_before(tmp_path: Path) -> None:
    first = '{"event":"a","timestamp":"1970-01-01T00:00:01.500Z"}'
    second = '{"timestamp": "1970-01-01T00:00:02.250Z"}'
    write(tmp_path, "Greeter", f"{first}\n[ERROR] broken\n{second}\n")
    assert list(logs.read_lines(tmp_path, ["Greeter"], 0)) == [
        (1500, "Greeter", first),
        (1500, "Greeter", "[ERROR] broken"),
        (2250, "Greeter", second),
    ]
    assert [at for at, _, _ in logs.read_lines(tmp_path, ["Greeter"], 2000)] == [2250]


def test_function_that_never_ran_has_no_lines(tmp_path: Path) -> None:
    assert list(logs.read_lines(tmp_path, ["Silent"], 0)) == []


def test_line_may_concern_one_request_or_several() -> None:
    assert logs.concerns({"correlation_id": "my-id-01"}, "my-id-01")
    assert logs.concerns({"request_ids": ["a", "my-id-01"]}, "my-id-01")
    assert not logs.concerns(
        {"correlation_id": "my-id-012", "request_ids": ["my-id-0"]}, "my-id-01"
    )
    assert not logs.concerns({"request_ids": "my-id-01 and more"}, "my-id-01")
    assert not logs.concerns({}, "my-id-01")


def test_lines_of_one_millisecond_are_printed_while_mysql_is_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "find_rows", failing(OperationalError(2003, "Connection refused")))
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = f'{{"correlation_id":"my-id-01","timestamp":"{now}","event":"%s"}}'
    write(tmp_path, "Greeter", f"{line % 'a'}\n{line % 'b'}\n")
    assert logs.trace_request(Stack(tmp_path), ["Greeter"], "my-id-01", 10) == 0
    printed = capsys.readouterr()
    assert [text.partition(" ")[0] for text in printed.out.splitlines()] == ["Greeter"] * 2
    assert printed.err.startswith("without rows: mysql does not answer")


def test_only_the_chosen_request_of_a_batch_is_shown() -> None:
    line = {"event": "batch_consumed", "request_ids": ["a", "b", "c"], "_aws": {}, "function": "f"}
    assert logs.shorten(line, "b") == {
        "event": "batch_consumed",
        "request_ids": ["b", "and 2 more"],
    }
    assert logs.shorten({"request_ids": ["b"]}, "b") == {"request_ids": ["b"]}


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", "7", "[" * 100_000])
def test_foreign_line_is_skipped(text: str) -> None:
    assert logs.read_line(text) is None
