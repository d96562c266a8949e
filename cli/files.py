"""CSV files, gzipped or not, as input of a replay or an import. Errors name the line."""

import csv
import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TextIO, TypeVar

from cli.paths import CommandError

MAX_ID = 2**63 - 1
UNREADABLE = (OSError, EOFError, UnicodeDecodeError, csv.Error)

Row = TypeVar("Row", bound=Sequence[object])


def read_header(path: Path) -> list[str]:
    """Return the names of a file's columns. Raises CommandError."""
    try:
        with open_text(path) as text:
            return next(csv.reader(text), [])
    except UNREADABLE as error:
        raise CommandError(f"{path} cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class FileFormat(Generic[Row]):
    """Columns of a file. ``parse_row`` raises ValueError for an invalid row."""

    columns: Sequence[str]
    parse_row: Callable[[Sequence[str]], Row]

    def read(self, path: Path, limit: int | None = None) -> list[Row]:
        """Read the first ``limit`` rows. Raises CommandError, also for a file without rows."""
        try:
            with open_text(path) as text:
                rows = list(islice(self.parse(text, path.name), limit))
        except UNREADABLE as error:
            raise CommandError(f"{path} cannot be read: {error}") from None
        if not rows:
            raise CommandError(f"{path} has no rows")
        return rows

    def parse(self, lines: Iterable[str], name: str) -> Iterator[Row]:
        """Yield the rows of ``lines``, whose first is the header. Raises CommandError."""
        rows = csv.reader(lines)
        header = next(rows, [])
        if header != self.columns:
            raise CommandError(describe_bad_header(name, header, ",".join(self.columns)))
        for row in filter(None, rows):  # empty lines are skipped
            try:
                if len(row) != len(self.columns):
                    raise ValueError(f"{len(row)} columns, not {len(self.columns)}")
                yield self.parse_row(row)
            except ValueError as error:
                raise CommandError(f"{name}, line {rows.line_num}: {error}") from None

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


def open_text(path: Path) -> TextIO:
    """Open a text file, gzipped or not. Raises one of UNREADABLE, as reading from it does."""
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    if zipped:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")
