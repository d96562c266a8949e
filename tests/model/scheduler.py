"""A scheduler for model tests: the product's own code, interleaved at every call to a dependency.

Each process (a request, a consumer's batch, a sweep) is a greenlet that runs the real functions.
It pauses before and after each call to Redis, MySQL and the queue; a seeded random choice says
which process goes on, which is killed there, and which sleeps for long. A transaction is one step:
consumers that share a target take turns at its counter row (``counters.lock_content``), so nothing
finer could be told apart.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from greenlet import GreenletExit, getcurrent, greenlet

from plaza.infra import clock, mysql, redis
from plaza.infra.dependencies import Dependency, RetryRule
from plaza.infra.redis import RedisDown
from tests.support.servers import IS_CLUSTER

MIN_SLEEP, MAX_SLEEP = 20, 900  # steps of other processes
MIN_STEP_US, MAX_STEP_US = 20, 100


class Clock:
    """The time of a model: it passes by steps.

    On a cluster it is the real time: scripts have no other there, since a key that says the time
    would be in one slot.
    """

    def __init__(self) -> None:
        self._now_us = time.time_ns() // 1000

    @property
    def now_us(self) -> int:
        return time.time_ns() // 1000 if IS_CLUSTER else self._now_us

    def pass_by(self, by_us: int) -> None:
        """So much time passes."""
        self._now_us += by_us


class Scheduler:
    """Runs processes a step at a time, in an order that ``rng`` decides.

    ``stall`` is the chance per step that the process sleeps: for many steps, so that others pass it
    with all they do.
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
        self._main = getcurrent()

    def hook(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make every call to Redis and MySQL a place where a process pauses."""
        for dependency in (redis.REDIS, mysql.MYSQL):
            monkeypatch.setattr(dependency, "call", self._pausing(dependency))

    def hook_clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the time of the product that of the model."""
        monkeypatch.setattr(clock, "now_us", lambda: self.clock.now_us)
        monkeypatch.setattr(clock, "monotonic_s", lambda: self.clock.now_us / 1e6)
        monkeypatch.setattr(clock, "sleep", self.sleep)

    def spawn(self, work: Callable[[], Any]) -> greenlet:
        """A new process; it has not begun."""

        def run() -> None:
            try:
                work()
            except GreenletExit:
                raise
            finally:
                self.alive.remove(getcurrent())
                self._asleep.pop(getcurrent(), None)

        process = greenlet(run, parent=self._main)
        self.alive.append(process)
        return process

    def step(self) -> None:
        """One process goes on to its next pause, unless it sleeps."""
        self.steps += 1
        self.clock.pass_by(self.rng.randint(MIN_STEP_US, MAX_STEP_US))
        process = self.rng.choice(self.alive)
        if self._asleep.get(process, 0) > self.steps:
            return
        if self.stall and self.rng.random() < self.stall:
            self._asleep[process] = self.steps + self.rng.randint(MIN_SLEEP, MAX_SLEEP)
            return
        process.switch()

    def kill(self) -> None:
        """One process ends where it is, and what it had in memory is gone."""
        victim = self.rng.choice(self.alive)
        self._killed.add(victim)
        victim.throw(GreenletExit)
        if victim in self.alive:  # it had not begun
            self.alive.remove(victim)
        self._asleep.pop(victim, None)

    def finish(self) -> None:
        """Every process goes on to its end, in random order."""
        while self.alive:
            self.step()

    def pause(self) -> None:
        """Let another process go on, if this is one. The killed do nothing any more, also not
        what a ``finally`` asks for."""
        if getcurrent() in self._killed:
            raise GreenletExit
        if getcurrent() is not self._main:
            self._main.switch()

    def sleep(self, seconds: float) -> None:
        """In place of ``clock.sleep``: others go on until the time is over."""
        until_us = self.clock.now_us + int(seconds * 1e6)
        if getcurrent() is self._main:
            self.clock.pass_by(until_us - self.clock.now_us)
        while self.clock.now_us < until_us:
            self.pause()

    def _pausing(self, dependency: Dependency) -> Callable[..., Any]:
        call = dependency.call

        def paused(work: Callable[[], Any], *retries: RetryRule) -> Any:
            self.pause()
            if dependency is redis.REDIS and self.redis_away and getcurrent() is not self._main:
                raise RedisDown("Redis is away (the model says so)", may_have_run=False)
            result = call(work, *retries)
            self.pause()
            return result

        return paused
