"""How a line of a file becomes a reaction: times, states, and what is wrong with a line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cli.paths import CommandError
from ops import history
from ops.history import Batch, Layout, read_batches
from ops.import_times import parse_time
from plaza.infra.runtime import clock

NOON_US = 1_795_348_800_000_000  # 2026-11-22T12:00:00Z
LIKES = Layout("like", "post", state_column="state")


@pytest.fixture(autouse=True)
def _later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_us", lambda: NOON_US + 60_000_000)


def read(file: Path, text: str | bytes, layout: Layout = LIKES, after_line: int = 0) -> list[Batch]:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_batches(file, layout, after_line))


@pytest.mark.parametrize(
    ("text", "at_us"),
    [
        ("1795348800", NOON_US),
        ("1795348800.25", NOON_US + 250_000),
        ("2026-11-22T12:00:00Z", NOON_US),
        ("2026-11-22T13:00:00.000001+01:00", NOON_US + 1),
        ("2026-11-22 12:00:00", NOON_US),
        ("2026-11-22 12:00:00.5", NOON_US + 500_000),
        ("1970-01-01T00:00:01Z", 1_000_000),
    ],
)
def test_times_are_read(text: str, at_us: int) -> None:
    assert parse_time("created_at", text, NOON_US + 60_000_000) == at_us


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "-1", "1e9", "1795348800000", "١٧٩٥٣٤٨٨٠٠", "NULL", "yesterday", "12:00"),
        *("1969-12-31", "0001-01-01T00:00:00+12:00"),
    ],
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="created_at is"):
        parse_time("created_at", text, NOON_US + 60_000_000)


def test_a_line_is_found_by_the_names_of_its_columns(tmp_path: Path) -> None:
    layout = Layout("collect", "post", "who", "photo", "at")
    [batch] = read(tmp_path / "f.csv", "at,x,photo,who\n1795348800,y,11,7\n", layout)
    [(line, event)] = batch.events
    assert (line, event.on, event.version_us) == (2, True, NOON_US)
    assert event.key == ("post", 11, "collect", 7)


def test_an_unlike_is_later_than_a_like_of_the_same_time(tmp_path: Path) -> None:
    text = "user_id,post_id,created_at,state\n7,1,1795348800,0\n7,1,1795348800,TRUE\n"
    [batch] = read(tmp_path / "f.csv", text)
    versions = {event.on: event.version_us for _, event in batch.events}
    assert versions == {True: NOON_US, False: NOON_US + 1}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("7,1,1795348800", "3 columns, not 4"),
        ("x,1,1795348800,1", "user_id is 'x', not a whole number from 1 to 2^63-1"),
        ("7,0,1795348800,1", "post_id is '0', not a whole number from 1 to 2^63-1"),
        ("7,9223372036854775808,1795348800,1", "post_id is '9223372036854775808', not a whole"),
        ("7,1,soon,1", "created_at is 'soon', not a time like 2026-11-22T12:00:00Z or 1795348800"),
        ("7,1,1795348861,1", "created_at is '1795348861', in the future"),
        ("7,1,1795348800,maybe", "state is 'maybe', not 1, 0, true or false"),
    ],
)
def test_a_bad_line_is_reported_with_its_number(tmp_path: Path, row: str, text: str) -> None:
    lines = f'user_id,post_id,created_at,state\n"7","1",1795348800,1\n\n{row}\n8,1,1795348800,1\n'
    [batch] = read(tmp_path / "f.csv", lines)
    assert [line for line, _ in batch.events] == [2, 5]
    [(line, bad)] = batch.bad
    assert line == 4
    assert bad.startswith(text)


@pytest.mark.parametrize(
    "write", [str.encode, lambda text: gzip.compress(text.encode())], ids=["plain", "gzipped"]
)
def test_output_of_mysql_is_read(tmp_path: Path, write: object) -> None:
    text = "user_id\tpost_id\tcreated_at\tstate\n7\t1\t2026-11-22 12:00:00\t1\n"
    [batch] = read(tmp_path / "f", write(text))  # type: ignore[operator]
    assert [event.key.actor_id for _, event in batch.events] == [7]


def test_batches_are_bounded_and_continue_after_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LINES_PER_BATCH", 2)
    lines = [f"{user},1,1795348800,1" for user in range(1, 6)]
    text = "\n".join(["user_id,post_id,created_at,state", *lines])
    assert [len(b.events) for b in read(tmp_path / "f.csv", text)] == [2, 2, 1]
    continued = read(tmp_path / "f.csv", text, after_line=4)
    assert [line for batch in continued for line, _ in batch.events] == [5, 6]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "line 1: the header is '', not with user_id"),
        ("user_id,created_at,state\n", "'user_id,created_at,state', not with post_id"),
        ("user_id,post_id,post_id,created_at,state\n", "not with one post_id"),
        (b"\xff\xfeu\0s\0e\0r\0", "line 1: not UTF-8 from byte 1"),
        (gzip.compress(b"user_id,post_id,created_at,state\n" * 99, mtime=0)[:40], "cannot be read"),
    ],
)
def test_an_unreadable_file_is_reported(tmp_path: Path, content: str | bytes, text: str) -> None:
    with pytest.raises(CommandError, match=text):
        read(tmp_path / "f.csv", content)
