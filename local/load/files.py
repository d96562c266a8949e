"""Files that people give us: CSV, gzipped or not. A bad line is named by its number."""

import csv
import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO, TypeVar

from local.paths import LocalError

MAX_ID = 2**63 - 1

Row = TypeVar("Row")


def read_header(path: Path) -> list[str]:
    """The names of a file's columns. Raises LocalError."""
    try:
        with _open_text(path) as text:
            return next(csv.reader(text), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise LocalError(f"{path} can't be read: {error}") from None


def read_rows(
    path: Path,
    columns: Sequence[str],
    read_row: Callable[[Sequence[str]], Row],
    limit: int | None = None,
) -> list[Row]:
    """The first ``limit`` rows of a file, see ``parse_rows``. Raises LocalError, also for none."""
    try:
        with _open_text(path) as text:
            found = list(islice(parse_rows(text, path.name, columns, read_row), limit))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise LocalError(f"{path} can't be read: {error}") from None
    if not found:
        raise LocalError(f"{path} holds no rows")
    return found


def parse_rows(
    lines: Iterable[str],
    name: str,
    columns: Sequence[str],
    read_row: Callable[[Sequence[str]], Row],
) -> Iterator[Row]:
    """The rows in ``lines``, the first of which is the header and must name ``columns``.

    ``read_row`` raises ValueError for what makes no sense. Raises LocalError, naming the line.
    """
    rows = csv.reader(lines)
    header = next(rows, [])
    if header != columns:
        raise LocalError(describe_bad_header(name, header, ",".join(columns)))
    for row in filter(None, rows):  # an empty line is nothing
        try:
            if len(row) != len(columns):
                raise ValueError(f"{len(row)} columns, not {len(columns)}")
            yield read_row(row)
        except ValueError as error:
            raise LocalError(f"{name}, line {rows.line_num}: {error}") from None


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a file that ``read_rows`` reads."""
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        writer.writerows(rows)


def describe_bad_header(name: str, header: Sequence[str], wanted: str) -> str:
    """That a file's header is not the one that was wanted."""
    return f"{name}, line 1: the header is {','.join(header)[:80]!r}, not {wanted}"


def parse_whole_number(column: str, text: str, minimum: int = 1) -> int:
    """A whole number from ``minimum`` to 2^63-1. Raises ValueError."""
    # int() alone would take "1_000", " 7" and digits of other scripts
    if not (text.isascii() and text.isdigit()) or not minimum <= int(text[:20]) <= MAX_ID:
        raise ValueError(f"{column} is {text[:40]!r}, not a whole number from {minimum} to 2^63-1")
    return int(text)


def _open_text(path: Path) -> TextIO:
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    if zipped:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")
