"""Deletion of expired rows in small steps, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plaza.infra.clock import Deadline

MAX_RUN_S = 40
CHUNK = 1_000  # rows of one statement: it locks them for milliseconds

Delete = Callable[[int], int]
"""Deletes up to the given number of rows, oldest first; returns how many. One statement."""


def delete_in_steps(deletes: Mapping[str, Delete], max_s: float = MAX_RUN_S) -> dict[str, int]:
    """Call each of ``deletes`` until no row is left, for about ``max_s`` seconds in all.
    Returns name -> deleted rows. Raises what they raise."""
    deadline = Deadline.in_s(max_s)
    return {name: _delete(delete, deadline) for name, delete in deletes.items()}


def _delete(delete: Delete, deadline: Deadline) -> int:
    deleted, last = 0, CHUNK
    while last == CHUNK and not deadline.has_passed:
        last = delete(CHUNK)
        deleted += last
    return deleted
