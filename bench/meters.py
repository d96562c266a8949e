"""Meters of work: time, CPU, statements."""

import time
from collections.abc import Callable

from plaza.infra import mysql, redis


def time_s(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def cpu_ms(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    work()
    return (time.process_time() - began_s) * 1000


def redis_cpu_s(*, main_thread: bool = False) -> float:
    """Return the CPU seconds of Redis so far, of all its threads or of the main one."""
    info, suffix = redis.execute("INFO", "cpu"), "_main_thread" * main_thread
    return float(info[f"used_cpu_user{suffix}"]) + float(info[f"used_cpu_sys{suffix}"])


def count_statements(work: Callable[[], object]) -> int:
    """Count the statements of ``work``, BEGIN and COMMIT included."""
    before = _count_questions()
    work()
    return _count_questions() - before - 1


def _count_questions() -> int:
    return int(mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")[0][1])
