"""Deletion of expired rows in small steps, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from plaza.infra.jobs.scheduled_jobs import run_jobs
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline

MAX_RUN_S = 40
CHUNK = 1_000  # rows of one statement: it locks them for milliseconds

Delete = Callable[[int], int]
"""Deletes up to the given number of rows, oldest first; returns how many. One statement."""


def delete_in_steps(deletes: Mapping[str, Delete], max_s: float = MAX_RUN_S) -> dict[str, int]:
    """Call each of ``deletes`` until no row is left, for about ``max_s`` seconds in all; each hour
    another one is first. Returns name -> deleted rows. Raises their first error after all have run.
    """
    deadline = Deadline.in_s(max_s)
    jobs = {name: partial(_delete, delete, deadline) for name, delete in deletes.items()}
    return run_jobs(jobs, run=int(clock.now_s() // 3600))


def _delete(delete: Delete, deadline: Deadline) -> int:
    deleted, last = 0, CHUNK
    while last == CHUNK and not deadline.has_passed:
        last = delete(CHUNK)
        deleted += last
    return deleted
