"""Meters of work: time, CPU, statements."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil

from plaza.infra.mysql import binlog, mysql
from plaza.infra.redis import redis


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


class MysqlLoad(NamedTuple):
    """What MySQL has done so far, or between two readings."""

    cpu_s: float
    redo_bytes: int
    binlog_bytes: int

    def __sub__(self, earlier: "MysqlLoad") -> "MysqlLoad":
        return MysqlLoad(
            self.cpu_s - earlier.cpu_s,
            self.redo_bytes - earlier.redo_bytes,
            self.binlog_bytes - earlier.binlog_bytes,
        )


def mysql_load() -> MysqlLoad:
    """Return the CPU seconds of MySQL's process, and the bytes of its redo log and binlog."""
    [(pid_file, redo_bytes)] = mysql.fetch_all(
        """
        SELECT @@pid_file, variable_value FROM information_schema.global_status
        WHERE variable_name = 'Innodb_os_log_written'
        """
    )
    cpu = psutil.Process(int(Path(pid_file).read_text())).cpu_times()
    return MysqlLoad(cpu.user + cpu.system, int(redo_bytes), binlog.read_end().log_pos)


class Cpu(NamedTuple):
    """CPU seconds of this process, MySQL and Redis."""

    python: float = 0.0
    mysql: float = 0.0
    redis: float = 0.0

    def __add__(self, other: "Cpu") -> "Cpu":  # type: ignore[override]
        return Cpu(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, earlier: "Cpu") -> "Cpu":
        return Cpu(*(a - b for a, b in zip(self, earlier, strict=True)))


def cpu() -> Cpu:
    """Return the CPU seconds so far."""
    return Cpu(time.process_time(), mysql_load().cpu_s, redis_cpu_s())


def count_statements(work: Callable[[], object]) -> int:
    """Count the statements of ``work``, BEGIN and COMMIT included."""
    before = _count_questions()
    work()
    return _count_questions() - before - 1


def _count_questions() -> int:
    return int(mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")[0][1])
