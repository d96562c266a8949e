"""The faults and the crowd of the console's page "Break it". Only a local stack has them.

A crowd of likes is played on posts of its own, while Redis or MySQL is stopped, consumers are
killed, or messages are delivered twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from cli.paths import CommandError
from local.audit.audit import audit_when_quiet, run_audit
from local.audit.backlog import shorten_visibility_timeout
from local.load.background import find_connected
from local.load.crowd import Tally
from local.load.demo import make_interactions
from local.load.interactions import Interactions
from local.load.player import Player
from local.stack import deployment
from local.stack.cluster import Cluster
from local.stack.queue_registry import load_queues
from local.stack.servers import Server
from local.stack.stack import Stack, use_stack
from local.stack.tokens import open_sessions

OPERATOR = 8_999_998
CROWD = range(8_700_001, 8_700_041)
POSTS = 20
LIKES = 600
LIKES_PER_S = 50.0
DUPLICATES = 0.1
CONCURRENCY = 8
CONSUMER = "SaveReactions"
SESSION_S = 24 * 3600
AUDIT_WAIT_S = 10.0  # the page asks again, with what is in transit meanwhile
_VIEW = 3.0  # a rating that is no like


class Control:
    """Breaks and repairs one stack. ``run`` executes one action at a time."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        # One thread for all actions: a server ends with the thread that started it.
        self._thread = ThreadPoolExecutor(1)
        self._ends = contextlib.ExitStack()
        self._is_prepared = False
        self._crowd: Crowd | None = None
        self._copies = 1
        self._killed = 0
        self._actions: dict[str, Callable[[], Any]] = {
            "start-crowd": self._start_crowd,
            "stop-redis": lambda: self._server("redis").stop(),
            "start-redis": lambda: self._server("redis").start(),
            "stop-mysql": lambda: self._server("mysql").stop(),
            "start-mysql": lambda: self._server("mysql").start(),
            "kill-consumers": self._kill_consumers,
            "double-deliveries": lambda: self._deliver(2),
            "single-deliveries": lambda: self._deliver(1),
        }

    def run(self, action: str) -> dict[str, Any]:
        """Execute an action and return the state afterwards. Raises CommandError."""
        if action not in self._actions:
            raise CommandError(f"there is no action {action[:40]!r}")
        self._thread.submit(self._actions[action]).result()
        return self.read_state()

    def read_state(self) -> dict[str, Any]:
        """Return what is stopped, how messages are delivered, and how far the crowd is."""
        return {
            "redis": _describe_server(self._stack.redis),
            "mysql": _describe_server(self._stack.mysql),
            "copies": self._copies,
            "killed": self._killed,
            "crowd": self._crowd and self._crowd.describe(),
        }

    def audit(self, wait: bool) -> dict[str, Any]:
        """Return the report of ``python -m local audit``; of each queue with messages their number
        and the seconds after which a failed one is tried again at the latest. ``wait``: as
        ``--wait`` does, for a moment. Raises CommandError."""
        with use_stack(self._stack):
            read = audit_when_quiet(self._stack, AUDIT_WAIT_S) if wait else run_audit(self._stack)
        report, queues = read.to_json(), load_queues()
        report["queues"] = [
            {
                "name": name,
                "messages": number,
                "retry_s": max(queues[name].visibility_s, *queues[name].retry.back_off_s),
            }
            for name, number in report["queues"].items()
        ]
        return report

    def open_operator_session(self) -> dict[str, Any]:
        """Return a new session of an operator, as the client stores it. Raises CommandError."""
        [token] = open_sessions(self._stack, [OPERATOR], "admin")
        user = {"id": str(OPERATOR), "nickname": "Operator", "avatar": None}
        expires_at_ms = int((time.time() + SESSION_S) * 1000)
        return {"token": token, "expiresAt": expires_at_ms, "user": user}

    def _start_crowd(self) -> None:
        if self._crowd is not None and self._crowd.is_running():
            raise CommandError("a crowd is playing already")
        self._prepare()
        self._crowd = Crowd(self._stack)

    def _kill_consumers(self) -> None:
        self._prepare()
        for worker in find_connected(self._stack, CONSUMER):
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
                self._killed += 1

    def _deliver(self, copies: int) -> None:
        body = json.dumps({"copies": copies})
        deployment.call_service(self._stack.lambda_url, "PUT", "/deliveries", body)
        self._copies = copies

    def _prepare(self) -> None:
        """Let messages of failed consumers return soon, as long as this process lives."""
        if not self._is_prepared:
            # Of all queues: consumers of others fail, too, while a store is stopped.
            self._ends.enter_context(shorten_visibility_timeout(self._stack, *self._stack.queues))
            self._is_prepared = True

    def _server(self, name: str) -> Server | Cluster:
        server = self._stack.redis if name == "redis" else self._stack.mysql
        if server is None:
            raise CommandError(f"this stack did not start its {name}")
        return server


class Crowd:
    """Users who like and unlike posts, some requests twice; a thread plays them.

    Raises CommandError when a store is unavailable: the crowd's posts are created first.
    """

    def __init__(self, stack: Stack) -> None:
        made = make_interactions(
            len(CROWD), POSTS, 2 * LIKES, first_id=CROWD[0], seed=random.randrange(1 << 30)
        )
        likes = [interaction for interaction in made if interaction.rating != _VIEW][:LIKES]
        self._scenario = Interactions(likes, DUPLICATES)
        user_ids = self._scenario.user_ids
        with use_stack(stack):
            self._tokens = dict(zip(user_ids, open_sessions(stack, user_ids), strict=True))
            self._expectations = self._scenario.prepare(stack)
        self._url = stack.base_url
        self._tally = Tally()
        self._ended = ""
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def describe(self) -> dict[str, Any]:
        """Return how many requests are done, of all, and their outcomes."""
        tally = self._tally
        return {
            "running": self.is_running(),
            "requests": len(self._scenario.requests),
            "done": tally.ended,
            "repeated": tally.duplicates,
            "provisional": tally.statuses[202],
            "retried": sum(tally.retries.values()),
            "failed": len(tally.failures),
            "ended": self._ended,
        }

    def _record(self, tally: Tally) -> None:
        self._tally = tally

    def _play(self) -> None:
        try:
            asyncio.run(self._send())
        except CommandError as error:
            self._ended = str(error)

    async def _send(self) -> None:
        async with Player(self._url, self._tokens, CONCURRENCY, self._record) as player:
            await player.play_requests(
                self._scenario.requests, self._expectations, rate=LIKES_PER_S
            )


def _describe_server(server: Server | Cluster | None) -> str:
    """Return ``external`` for a server that the stack did not start."""
    if server is None:
        return "external"
    return "up" if server.is_running() else "down"
