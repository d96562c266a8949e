"""Rows that are of no use after a time, and how they go: in small steps, oldest first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

MOST_S = 40
CHUNK = 1_000  # rows of one statement: its locks are held for milliseconds

Delete = Callable[[int], int]
"""Deletes at most so many rows, the oldest first; returns how many. One statement."""


def delete_in_steps(deletes: Mapping[str, Delete], most_s: float = MOST_S) -> dict[str, int]:
    """Call each of ``deletes`` until it has nothing left, for about ``most_s``; how many rows each
    deleted. Raises what they raise."""
    until_s = time.monotonic() + most_s
    return {name: _delete(delete, until_s) for name, delete in deletes.items()}


def _delete(delete: Delete, until_s: float) -> int:
    deleted, last = 0, CHUNK
    while last == CHUNK and time.monotonic() < until_s:
        last = delete(CHUNK)
        deleted += last
    return deleted
