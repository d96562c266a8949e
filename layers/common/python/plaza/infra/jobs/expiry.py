"""Deletion of expired rows in small steps, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from plaza.infra.jobs.scheduled_jobs import run_jobs
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline

MAX_RUN_S = 40
CHUNK = 1_000  # rows of one statement: it locks them for milliseconds

Delete = Callable[[int], int]
"""Deletes up to the given number of rows, oldest first; returns how many. One statement."""


class Expiry(NamedTuple):
    """How expired rows of ``table`` are deleted."""

    table: str
    delete: Delete

    @property
    def metric(self) -> str:
        """Name of the metric of deleted rows, such as ``sessions_deleted``."""
        return f"{self.table}s_deleted"


def delete_in_steps(expiries: Iterable[Expiry], max_s: float = MAX_RUN_S) -> dict[str, int]:
    """Delete the expired rows of each table, for about ``max_s`` seconds in all; each hour another
    table is first. Returns table -> deleted rows. Raises the first error after all have run."""
    deadline = Deadline.in_s(max_s)
    jobs = {table: partial(_delete, delete, deadline) for table, delete in expiries}
    return run_jobs(jobs, run=int(clock.now_s() // 3600))


def _delete(delete: Delete, deadline: Deadline) -> int:
    deleted, last = 0, CHUNK
    while last == CHUNK and not deadline.has_passed:
        last = delete(CHUNK)
        deleted += last
    return deleted
