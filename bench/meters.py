"""Meters of work: time, CPU, statements."""

from __future__ import annotations

import time
from collections.abc import Callable

from plaza.infra import mysql


def time_s(work: Callable[[], object]) -> float:
    """Return the seconds that ``work`` takes."""
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the milliseconds of CPU that ``work`` takes in this process."""
    began_s = time.process_time()
    work()
    return (time.process_time() - began_s) * 1000


def count_statements(work: Callable[[], object]) -> int:
    """Count the statements of ``work``, BEGIN and COMMIT included."""
    before = _count_questions()
    work()
    return _count_questions() - before - 1


def _count_questions() -> int:
    return int(mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")[0][1])
