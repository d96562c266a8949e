"""Sorts tuples of whole numbers in bounded memory: an external merge sort in a temporary file."""

import heapq
import os
import struct
import tempfile
from collections.abc import Iterator
from types import TracebackType

RUN_RECORDS = 500_000
"""Records that are sorted in memory at a time: about 30 MB."""

_BLOCK_RECORDS = 2_000  # read from each run at a time


class SortedRecords:
    """Records of ``width`` whole numbers from 0 to 2^64-1, read in ascending order as often as
    needed. Ten million records of three numbers take 60 MB of memory and 240 MB of disk."""

    def __init__(self, width: int) -> None:
        self._form = struct.Struct(f">{width}Q")  # big-endian: bytes sort as the numbers do
        self._in_memory: list[bytes] = []
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self._runs: list[tuple[int, int]] = []

    def __enter__(self) -> "SortedRecords":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, *numbers: int) -> None:
        """Add a record."""
        self._in_memory.append(self._form.pack(*numbers))
        if len(self._in_memory) >= RUN_RECORDS:
            self._write_run()

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        self._in_memory.sort()
        self._file.flush()
        runs = [self._read_run(begin, end) for begin, end in self._runs]
        for record in heapq.merge(self._in_memory, *runs):
            yield self._form.unpack(record)

    def _write_run(self) -> None:
        self._in_memory.sort()
        begin = self._runs[-1][1] if self._runs else 0
        written = self._file.write(b"".join(self._in_memory))
        self._runs.append((begin, begin + written))
        self._in_memory.clear()

    def _read_run(self, begin: int, end: int) -> Iterator[bytes]:
        size = self._form.size
        for at in range(begin, end, size * _BLOCK_RECORDS):
            length = min(size * _BLOCK_RECORDS, end - at)
            block = os.pread(self._file.fileno(), length, at)
            for start in range(0, length, size):
                yield block[start : start + size]
