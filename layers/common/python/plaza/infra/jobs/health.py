"""The health check of Redis, MySQL and SQS."""

from __future__ import annotations

from collections.abc import Callable

from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.redis import redis
from plaza.infra.runtime.errors import Unavailable


def check(queue: str) -> dict[str, str]:
    """Return ``up`` or ``down`` for ``redis``, ``mysql`` and ``queue``, and a ``status``.

    ``status`` is ``up``, ``down`` (Redis and MySQL are) or ``degraded``. One round trip, one
    statement, one call of SQS.
    """
    parts = {
        "redis": _probe(lambda: redis.execute("PING")),
        "mysql": _probe(lambda: mysql.fetch_all("SELECT 1")),
        "queue": _probe(lambda: sqs.measure(queue)),
    }
    down = [name for name, state in parts.items() if state == "down"]
    status = "up" if not down else "down" if {"redis", "mysql"} <= set(down) else "degraded"
    return {"status": status, **parts}


def _probe(probe: Callable[[], object]) -> str:
    try:
        probe()
    except Unavailable:
        return "down"
    return "up"
