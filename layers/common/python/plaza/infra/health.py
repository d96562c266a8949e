"""What is up."""

from __future__ import annotations

import time
from collections.abc import Callable

from plaza.infra import mysql, redis, sqs
from plaza.infra.errors import Unavailable

MAX_AGE_S = 5

_latest: tuple[float, dict[str, str]] | None = None


def read(queue: str) -> dict[str, str]:
    """As ``check``, at most ``MAX_AGE_S`` old: each process asks the parts that seldom."""
    global _latest
    if _latest is None or time.monotonic() - _latest[0] >= MAX_AGE_S:
        _latest = time.monotonic(), check(queue)
    return _latest[1]


def forget() -> None:
    """Let the next ``read`` check again."""
    global _latest
    _latest = None


def check(queue: str) -> dict[str, str]:
    """``up`` or ``down`` for Redis, MySQL and ``queue``, and ``status`` for all of it.

    One round trip, one statement, one call of SQS.
    """
    parts = {
        "redis": _ask(lambda: redis.execute("PING")),
        "mysql": _ask(lambda: mysql.fetch_all("SELECT 1")),
        "queue": _ask(lambda: sqs.measure(queue)),
    }
    down = [name for name, state in parts.items() if state == "down"]
    status = "up" if not down else "down" if {"redis", "mysql"} <= set(down) else "degraded"
    return {"status": status, **parts}


def _ask(question: Callable[[], object]) -> str:
    try:
        question()
    except Unavailable:
        return "down"
    return "up"
