"""Scan the keys of each Redis node in bounded steps.

SCAN returns each key that exists during the whole scan, some of them twice.
"""

from __future__ import annotations

from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown

_KEYS_PER_SCAN = 1000  # Redis serves other commands between two of them


def read_nodes() -> list[str]:
    """Return the names of the primary nodes. Raises RedisDown."""
    return sorted(redis.nodes())


def scan(node: str, cursor: int) -> tuple[int, list[str]]:
    """Return (next cursor, some keys of ``node``); the cursor is 0 at the end and without the node.

    One round trip. Raises RedisDown.
    """
    client = redis.nodes().get(node)
    if client is None:
        return 0, []
    [reply] = redis.send_to_node(client, [("SCAN", cursor, "COUNT", _KEYS_PER_SCAN)])
    if isinstance(reply, Exception):
        raise RedisDown(f"SCAN failed: {reply}") from reply
    return int(reply[0]), list(reply[1])
