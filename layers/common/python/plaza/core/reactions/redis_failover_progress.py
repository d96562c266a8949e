"""Progress of the failover recovery in Redis: the log's heads at the checks of this data.

``{<shard>}:log_checks`` is a hash: ``last``, the head of the log at the last check, and ``before``,
at the check before it. A single Redis has one, of shard 0. The heads are replicated and restored
with the data: a promoted node has those that its predecessor had replicated to it, whatever a
sweeper has checked at the predecessor since. Each function is one round trip, and raises RedisDown.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from plaza.core.reactions.term_guard import Masters
from plaza.infra.redis import redis, terms
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import SHARDS, tag_of
from plaza.infra.runtime.settings import settings

RECORD_HEADS = load_script(Path(__file__).with_name("lua") / "record_heads.lua")


class LogHeads(NamedTuple):
    """Heads of the log at the check before the last one, and at the last one."""

    before: int
    last: int


def _keys() -> list[str]:
    shards = SHARDS if settings().redis_cluster else 1
    return [f"{{{shard}}}:log_checks" for shard in range(shards)]


def read_heads() -> list[LogHeads]:
    """Return the heads of each shard that has some."""
    replies = redis.pipeline([("HMGET", key, "before", "last") for key in _keys()])
    return [LogHeads(int(before), int(last)) for before, last in replies if before]


def record_heads(masters: Masters, before: int, last: int) -> None:
    """Store heads in all shards whose node is still the one of ``masters``."""
    redis.run_all(
        [
            Call(RECORD_HEADS, (key,), (before, last, masters[tag_of(key)].term, _read_term))
            for key in _keys()
        ]
    )


def _read_term(node: str) -> tuple[str]:
    """Return the term of the node that a command is sent to, "" if it is not known."""
    known = terms.known_nodes.get(node)
    return (known.term if known else "",)
