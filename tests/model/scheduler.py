"""A scheduler for model tests: it interleaves the product's code at each call to a dependency.

Each process (a request, a consumer's batch, a sweep) is a greenlet that runs the real functions.
It pauses before and after each call to Redis, MySQL and the queue; a seeded random choice selects
the process that continues, is killed or sleeps. A transaction is one step: consumers of a target
and kind are serialized by its counter (``counters.lock_targets``), so smaller steps find nothing
more. A snapshot pauses before each of its statements.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from greenlet import GreenletExit, getcurrent, greenlet

from plaza.infra.mysql import mysql
from plaza.infra.redis import connections
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.dependencies import Dependency, RetryRule
from tests.support.servers import IS_CLUSTER

MIN_SLEEP, MAX_SLEEP = 20, 900  # steps of other processes
MIN_STEP_US, MAX_STEP_US = 20, 100


class Clock:
    """The time of a model, which advances with each step.

    On a cluster it is the real time: a key with the time would be in one slot, which scripts of
    other slots cannot read.
    """

    def __init__(self) -> None:
        self._now_us = time.time_ns() // 1000

    @property
    def now_us(self) -> int:
        return time.time_ns() // 1000 if IS_CLUSTER else self._now_us

    def advance(self, by_us: int) -> None:
        """Advance the time."""
        self._now_us += by_us


class _PausingCursor:
    """A cursor that pauses before each statement."""

    def __init__(self, cursor: Any, pause: Callable[[], None]) -> None:
        self._cursor = cursor
        self._pause = pause

    def execute(self, sql: str, args: Any = None) -> Any:
        self._pause()
        return self._cursor.execute(sql, args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


class Scheduler:
    """Runs processes a step at a time, in an order that ``rng`` decides.

    ``stall`` is the probability per step that the process sleeps for 20 to 900 steps.
    """

    def __init__(self, rng: random.Random, stall: float = 0.0) -> None:
        self.rng = rng
        self.stall = stall
        self.alive: list[greenlet] = []
        self.steps = 0
        self.clock = Clock()
        self.redis_away = False
        self._asleep: dict[greenlet, int] = {}
        self._killed: set[greenlet] = set()
        self.main = getcurrent()

    def hook(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make processes pause at each call to Redis and MySQL."""
        for dependency in (connections.REDIS, mysql.MYSQL):
            monkeypatch.setattr(dependency, "call", self._pausing(dependency))

    def hook_clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the product use the model's clock."""
        monkeypatch.setattr(clock, "now_us", lambda: self.clock.now_us)
        monkeypatch.setattr(clock, "monotonic_s", lambda: self.clock.now_us / 1e6)
        monkeypatch.setattr(clock, "sleep", self.sleep)

    def hook_snapshots(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make processes pause between the statements of a snapshot, on a connection of its own."""
        run, connect, read_all = mysql.run_in_snapshot, mysql._connect, mysql.read_all
        of_snapshot: dict[greenlet, Any] = {}

        def run_in_snapshot(work: Callable[[Any], Any]) -> Any:
            process = getcurrent()
            if process is self.main:
                return run(work)
            of_snapshot[process] = connection = mysql._open()
            try:
                return run(lambda cursor: work(_PausingCursor(cursor, self.pause)))
            finally:
                del of_snapshot[process]
                connection.close()

        def read_after_a_pause(cursor: Any, selects: Any) -> Any:
            if isinstance(cursor, _PausingCursor):
                self.pause()
            return read_all(cursor, selects)

        monkeypatch.setattr(mysql, "run_in_snapshot", run_in_snapshot)
        monkeypatch.setattr(mysql, "read_all", read_after_a_pause)
        monkeypatch.setattr(mysql, "_connect", lambda: of_snapshot.get(getcurrent()) or connect())

    def spawn(self, work: Callable[[], Any]) -> greenlet:
        """Return a new process, which starts with one of the next steps."""

        def run() -> None:
            try:
                work()
            except GreenletExit:
                raise
            finally:
                self.alive.remove(getcurrent())
                self._asleep.pop(getcurrent(), None)

        process = greenlet(run, parent=self.main)
        self.alive.append(process)
        return process

    def step(self) -> None:
        """Run a random process to its next pause, unless it sleeps."""
        self.steps += 1
        self.clock.advance(self.rng.randint(MIN_STEP_US, MAX_STEP_US))
        process = self.rng.choice(self.alive)
        if self._asleep.get(process, 0) > self.steps:
            return
        if self.stall and self.rng.random() < self.stall:
            self._asleep[process] = self.steps + self.rng.randint(MIN_SLEEP, MAX_SLEEP)
            return
        process.switch()

    def kill(self) -> None:
        """End a random process where it is."""
        victim = self.rng.choice(self.alive)
        self._killed.add(victim)
        victim.throw(GreenletExit)
        if victim in self.alive:  # it had not started
            self.alive.remove(victim)
        self._asleep.pop(victim, None)

    def finish(self) -> None:
        """Run all processes to their ends, in random order."""
        while self.alive:
            self.step()

    def pause(self) -> None:
        """Switch to the scheduler, when called in a process. A killed process ends here, also in a
        ``finally``."""
        if getcurrent() in self._killed:
            raise GreenletExit
        if getcurrent() is not self.main:
            self.main.switch()

    def sleep(self, seconds: float) -> None:
        """Replace ``clock.sleep``: run other processes until the time is over."""
        until_us = self.clock.now_us + int(seconds * 1e6)
        if getcurrent() is self.main:
            self.clock.advance(until_us - self.clock.now_us)
        while self.clock.now_us < until_us:
            self.pause()

    def _pausing(self, dependency: Dependency) -> Callable[..., Any]:
        call = dependency.call

        def paused(work: Callable[[], Any], *retries: RetryRule) -> Any:
            self.pause()
            if (
                dependency is connections.REDIS
                and self.redis_away
                and getcurrent() is not self.main
            ):
                raise RedisDown("unavailable in the model", may_have_run=False)
            result = call(work, *retries)
            self.pause()
            return result

        return paused
