"""Empty Redis of Plaza's keys, without a dangerous command: what is there was found by a scan.

All keys of Plaza begin with the tag of a shard, or with ``auth`` and the tag, and no other
program's do: keys without one stay.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.clock import Deadline

MAX_RUN_S = 40.0
_KEYS_PER_STEP = 500  # Redis serves other clients between two steps
_OURS = re.compile(r"(?:auth)?\{\d{1,5}\}:")


class Flushed(NamedTuple):
    """How many keys were deleted, and whether the scan of all nodes has ended."""

    deleted: int
    finished: bool


def flush(max_s: float = MAX_RUN_S) -> Flushed:
    """Delete all keys of Plaza that exist during the whole scan, for about ``max_s``.

    Two round trips for 500 keys. Another run begins again and finds only what is left. Raises
    RedisDown.
    """
    deadline, deleted = Deadline.in_s(max_s), 0
    for node in redis.nodes().values():
        cursor = None
        while cursor != 0:
            if deadline.has_passed:
                return Flushed(deleted, finished=False)
            [reply] = redis.send_to_node(
                node, [("SCAN", cursor or 0, "MATCH", "*{*}:*", "COUNT", _KEYS_PER_STEP)]
            )
            if isinstance(reply, Exception):
                raise RedisDown(f"Redis refused SCAN: {reply}") from reply
            cursor = int(reply[0])
            keys = [key for key in reply[1] if _OURS.match(key)]
            if keys:
                deleted += sum(
                    count
                    for count in redis.send_to_node(node, redis.delete_commands(keys))
                    if isinstance(count, int)  # a key may have moved to another node meanwhile
                )
    return Flushed(deleted, finished=True)
