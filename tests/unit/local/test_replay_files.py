"""Reading a file of interactions."""

import gzip
from pathlib import Path

import pytest

from cli.paths import CommandError
from local.load.interactions import FILES, Interaction

HEADER = "user_id,item_id,rating,timestamp"


def test_line_is_an_interaction() -> None:
    assert list(FILES.parse([HEADER, "383,21,3.5,789652009"], "f.csv")) == [
        Interaction(383, 21, 3.5, 789652009)
    ]


def test_empty_line_is_skipped() -> None:
    assert list(FILES.parse([HEADER, "", "1,2,4,5", ""], "f.csv")) == [Interaction(1, 2, 4.0, 5)]


@pytest.mark.parametrize("zipped", [True, False])
def test_file_may_be_gzipped_whatever_its_name(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "f.data"
    text = f"{HEADER}\r\n1,2,4,5\r\n".encode()
    path.write_bytes(gzip.compress(text) if zipped else text)
    assert FILES.read(path) == [Interaction(1, 2, 4.0, 5)]


def test_limit_stops_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"{HEADER}\n1,2,4,5\n2,2,4,5\nnonsense\n")
    assert len(FILES.read(path, limit=2)) == 2


def test_written_rows_are_read_back(tmp_path: Path) -> None:
    interactions = [Interaction(1, 2**63 - 1, 4.5, 0), Interaction(3, 4, 5.0, 7)]
    FILES.write(tmp_path / "f.csv", interactions)
    assert FILES.read(tmp_path / "f.csv") == interactions


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("1,2,3", "3 columns, not 4"),
        ("1,2,3,4,5", "5 columns, not 4"),
        ("x,2,3,4", "user_id is 'x'"),
        ("0,2,3,4", "user_id is '0'"),
        ("-1,2,3,4", "user_id is '-1'"),
        ("1.0,2,3,4", "user_id is '1.0'"),
        ("1_0,2,3,4", "user_id is '1_0'"),
        ("٣,2,3,4", "user_id is '٣'"),
        ("9223372036854775808,2,3,4", "user_id is '9223372036854775808'"),
        ("1," + "9" * 5000 + ",3,4", "item_id is '999"),
        ("1,,3,4", "item_id is ''"),
        ("1,2,nan,4", "rating is 'nan'"),
        ("1,2,5.5,4", "rating is '5.5'"),
        ("1,2,good,4", "rating is 'good'"),
        ("1,2,3,yesterday", "timestamp is 'yesterday'"),
    ],
)
def test_bad_line_is_reported_with_its_error(line: str, named: str) -> None:
    with pytest.raises(CommandError) as error:
        list(FILES.parse([HEADER, "1,2,3,4", line], "f.csv"))
    assert str(error.value).startswith("f.csv, line 3: ")
    assert named in str(error.value)


@pytest.mark.parametrize("header", ["follower_id,followee_id", "1,2,3,4", "", "user_id,item_id"])
def test_wrong_header_is_reported(header: str) -> None:
    with pytest.raises(CommandError, match=r"f\.csv, line 1: the header is"):
        list(FILES.parse([header], "f.csv"))


def test_file_without_rows_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(HEADER + "\n")
    with pytest.raises(CommandError, match="has no rows"):
        FILES.read(path)
    path.write_text("")
    with pytest.raises(CommandError, match="line 1"):
        FILES.read(path)


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"\x1f\x8bnot really zipped", b"\xff\xfe\x00"])
def test_file_that_is_not_text_is_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=r"f\.csv"):
        FILES.read(path)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        FILES.read(tmp_path / "nowhere.csv")
