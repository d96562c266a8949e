"""A scheduler for the model test: the product's own code, interleaved at every step outside.

Each process (a request, a consumer's batch, a sweep) is a greenlet that runs the real functions.
It pauses before and after each call to Redis, MySQL and the queue; a seeded random choice says who
goes on and who is killed there. A transaction is one step: consumers that share a target take turns
at its counter row (see ``counters.lock_content``), so nothing finer could be told apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from greenlet import GreenletExit, getcurrent, greenlet

from plaza.infra import mysql, redis
from plaza.infra.redis import RedisDown


class Scheduler:
    """Runs processes a step at a time, in an order that ``rng`` decides."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.alive: list[greenlet] = []
        self.redis_away = False
        self._killed: set[greenlet] = set()
        self._main = getcurrent()

    def hook(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make every call to Redis and MySQL a place where a process pauses."""
        for module in (redis, mysql):
            monkeypatch.setattr(module, "_guarded", self._pausing(module, module._guarded))

    def spawn(self, work: Callable[[], Any]) -> None:
        """A new process; it has not begun."""

        def run() -> None:
            try:
                work()
            except GreenletExit:
                raise
            finally:
                self.alive.remove(getcurrent())

        self.alive.append(greenlet(run, parent=self._main))

    def step(self) -> None:
        """One process goes on to its next pause."""
        self.rng.choice(self.alive).switch()

    def kill(self) -> None:
        """One process ends where it is, and what it had in memory is gone."""
        victim = self.rng.choice(self.alive)
        self._killed.add(victim)
        victim.throw(GreenletExit)
        if victim in self.alive:  # it had not begun
            self.alive.remove(victim)

    def finish(self) -> None:
        """Everybody goes on to their end, in random order."""
        while self.alive:
            self.step()

    def pause(self) -> None:
        """Let somebody else go on, if this is a process. The killed do nothing any more, also not
        what a ``finally`` asks for."""
        if getcurrent() in self._killed:
            raise GreenletExit
        if getcurrent() is not self._main:
            self._main.switch()

    def _pausing(self, module: Any, guarded: Callable[..., Any]) -> Callable[..., Any]:
        def paused(call: Callable[[], Any]) -> Any:
            self.pause()
            if module is redis and self.redis_away and getcurrent() is not self._main:
                raise RedisDown("Redis is away (the model says so)")
            result = guarded(call)
            self.pause()
            return result

        return paused
