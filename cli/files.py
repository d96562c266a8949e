"""Text files, gzipped or not, as input of a replay or an import. Errors name the line.

A line ends with a newline in each format, so that a reader and ``count_lines`` agree about the
number of lines, whatever the lines contain. A line that cannot be read does not hide another one.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, TypeVar, cast

from cli.paths import CommandError

MAX_ID = 2**63 - 1
UNREADABLE = (OSError, EOFError, zlib.error)
MAX_LINE_BYTES = 1 << 20
"""More than any line of an import needs; a reader holds one line in memory."""

Row = TypeVar("Row", bound=Sequence[object])


class Line(NamedTuple):
    """A line of a file, without its end. ``problem`` says why it has no text; else empty."""

    number: int
    text: str
    problem: str = ""


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file in UTF-8, with one line in memory. Raises CommandError."""
    number = 0
    try:
        with _open(path) as file:
            while data := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(data) > MAX_LINE_BYTES and not data.endswith(b"\n"):
                    while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                        pass
                    yield Line(number, "", f"longer than {MAX_LINE_BYTES:,} bytes")
                else:
                    yield _decode(number, data)
    except UNREADABLE as error:
        raise CommandError(f"{path} cannot be read after line {number:,}: {error}") from None


def _decode(number: int, data: bytes) -> Line:
    try:
        text = data.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        return Line(number, "", f"not UTF-8 from byte {error.start + 1} of the line on")
    if "\0" in text:
        return Line(number, "", "a NUL character is not text")
    return Line(number, text.removesuffix("\n").removesuffix("\r"))


def read_texts(path: Path) -> Iterator[str]:
    """Yield the texts of lines. Raises CommandError, also for a line that has none."""
    for line in read_lines(path):
        if line.problem:
            raise CommandError(f"{path.name}, line {line.number}: {line.problem}")
        yield line.text


def count_lines(path: Path) -> int:
    """Return the number of lines, counted without parsing them. Raises CommandError."""
    count, last = 0, b"\n"
    try:
        with _open(path) as file:
            while chunk := file.read(MAX_LINE_BYTES):
                count += chunk.count(b"\n")
                last = chunk[-1:]
    except UNREADABLE as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    return count + (last != b"\n")


class OpenQuote(ValueError):
    """A quoted field does not end on its line."""


def split_csv(text: str) -> list[str]:
    """Return the fields of a line of CSV, none of an empty one. Raises OpenQuote, ValueError."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        if str(error) == "unexpected end of data":
            raise OpenQuote("a quoted field does not end on its line") from None
        raise ValueError(f"not CSV: {error}") from None


def read_header(path: Path) -> list[str]:
    """Return the names of a file's columns. Raises CommandError."""
    try:
        return split_csv(next(read_texts(path), ""))
    except ValueError as error:
        raise CommandError(f"{path.name}, line 1: {error}") from None


@dataclass(frozen=True, slots=True)
class FileFormat(Generic[Row]):
    """Columns of a file. ``parse_row`` raises ValueError for an invalid row."""

    columns: Sequence[str]
    parse_row: Callable[[Sequence[str]], Row]

    def read(self, path: Path, limit: int | None = None) -> list[Row]:
        """Read the first ``limit`` rows. Raises CommandError, also for a file without rows."""
        rows = list(islice(self.parse(read_texts(path), path.name), limit))
        if not rows:
            raise CommandError(f"{path} has no rows")
        return rows

    def parse(self, lines: Iterable[str], name: str) -> Iterator[Row]:
        """Yield the rows of ``lines``, whose first is the header. Raises CommandError."""
        for number, text in enumerate(chain(lines, [""]), 1):
            try:
                row = split_csv(text)
                if number == 1 and row != self.columns:
                    raise CommandError(describe_bad_header(name, row, ",".join(self.columns)))
                if number == 1 or not row:  # empty lines are skipped
                    continue
                if len(row) != len(self.columns):
                    raise ValueError(f"{len(row)} columns, not {len(self.columns)}")
                yield self.parse_row(row)
            except ValueError as error:
                raise CommandError(f"{name}, line {number}: {error}") from None

    def write(self, path: Path, rows: Iterable[Row]) -> None:
        with path.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(self.columns)
            writer.writerows(rows)


def describe_bad_header(name: str, header: Sequence[str], expected: str) -> str:
    """Return the error text for a header that is not the expected one."""
    return f"{name}, line 1: the header is {','.join(header)[:80]!r}, not {expected}"


def parse_whole_number(column: str, text: str, minimum: int = 1) -> int:
    """Parse a whole number from ``minimum`` to 2^63-1. Raises ValueError."""
    # int() alone accepts "1_000", " 7" and digits of other scripts
    if not (text.isascii() and text.isdigit()) or not minimum <= int(text[:20]) <= MAX_ID:
        raise ValueError(f"{column} is {text[:40]!r}, not a whole number from {minimum} to 2^63-1")
    return int(text)


def _open(path: Path) -> BinaryIO:
    """Open a file, gzipped or not."""
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path)) if zipped else path.open("rb")
