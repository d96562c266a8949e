"""What is up."""

from __future__ import annotations

from collections.abc import Callable

from plaza.infra import mysql, queues, redis
from plaza.infra.errors import Unavailable


def check() -> dict[str, str]:
    """``up`` or ``down`` for Redis, MySQL and the queues, and ``status`` for all of it."""
    parts = {
        "redis": _ask(lambda: redis.execute("PING")),
        "mysql": _ask(lambda: mysql.fetch_all("SELECT 1")),
        "queue": _ask(lambda: queues.backlog("reactions")),
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
