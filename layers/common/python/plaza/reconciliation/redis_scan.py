"""All keys of Redis, a node after the other, in bounded steps.

SCAN gives each key that is there all the while, some of them twice.
"""

from __future__ import annotations

from plaza.infra import redis
from plaza.infra.redis import RedisDown

_KEYS_PER_SCAN = 1000  # Redis serves others between two of them


def read_nodes() -> list[str]:
    """The names of the nodes that have keys of their own. Raises RedisDown."""
    return sorted(redis.nodes())


def scan(node: str, cursor: int) -> tuple[int, list[str]]:
    """(where to go on, some keys of ``node``); 0 at the end, and when the node has gone.

    One round trip. Raises RedisDown.
    """
    client = redis.nodes().get(node)
    if client is None:
        return 0, []
    [answer] = redis.send_to_node(client, [("SCAN", cursor, "COUNT", _KEYS_PER_SCAN)])
    if isinstance(answer, Exception):
        raise RedisDown(f"A node doesn't scan: {answer}") from answer
    return int(answer[0]), list(answer[1])
