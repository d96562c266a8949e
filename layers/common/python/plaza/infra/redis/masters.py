"""The masters of keys and shards: scripts that depend on their node, and terms of all shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from plaza.infra.redis import cluster, connections, redis, terms
from plaza.infra.redis.commands import Argument
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.scripts import Script
from plaza.infra.redis.shards import SHARDS
from plaza.infra.redis.terms import Node
from plaza.infra.runtime import clock
from plaza.infra.runtime.settings import settings

_TAGS = [f"{{{shard}" for shard in range(SHARDS)]
_MAX_CLOCK_AGE_S = 300  # how long a measurement is preferred to a later, lower one


class Master(NamedTuple):
    """The master of a shard, named by the lowest slot of its shards (0: a single Redis)."""

    first_slot: int
    term: str
    predecessor: str


def run_on_node(
    script: Script, keys: Sequence[str], args_for: Callable[[Node], Sequence[Argument]]
) -> Any:
    """Run ``script`` with arguments that depend on the node that runs it.

    ``args_for`` is called for each copy that is sent, also for one sent again to another node. The
    last call was for the node that replied, unless the connection to a single Redis was lost
    meanwhile. Raises RedisDown.
    """
    known = terms.known_nodes
    return redis.run(script, keys, (lambda name: args_for(known.get(name) or find_node(keys[0])),))


def find_node(key: str) -> Node:
    """Return the master that stores ``key``. No round trip if this process is connected to it.
    Raises RedisDown."""
    name = _name_node_of(key)
    if not _has_term(name):
        redis.execute("EXISTS", key)  # connects; a replica redirects to its master
        name = _name_node_of(key)
    if not _has_term(name):
        raise RedisDown(f"Redis is unavailable: no connection to a master at {name or 'it'}")
    return terms.known_nodes[name]


def _has_term(name: str) -> bool:
    return name in terms.known_nodes and bool(terms.known_nodes[name].term)


def observe_clock(key: str, now_us: int) -> None:
    """Use the TIME in a reply that was just received as a measurement of the node's clock.

    The reply's way makes a measurement too low, never too high: the highest of 5 minutes is kept.
    """
    name = _name_node_of(key)
    node, now_s = terms.known_nodes.get(name), clock.monotonic_s()
    clock_offset_us = now_us - int(now_s * 1e6)
    if node and (
        clock_offset_us > node.clock_offset_us or now_s - node.measured_s > _MAX_CLOCK_AGE_S
    ):
        measured = node._replace(clock_offset_us=clock_offset_us, measured_s=now_s)
        terms.known_nodes[name] = measured


def _name_node_of(key: str) -> str:
    if not settings().redis_cluster:
        return ""
    return connections.REDIS.call(partial(connections.name_node, ("EXISTS", key)))


def read_masters(max_age_s: float = terms.MAX_TERM_AGE_S) -> dict[str, Master]:
    """Return hash tag (``{7``) -> the master of each shard, as read at most ``max_age_s`` ago.

    No round trip when all terms are younger, else one to each node. Raises RedisDown.
    """
    if not settings().redis_cluster:
        node = _refresh_terms(_TAGS[:1], max_age_s)[_TAGS[0]]
        return dict.fromkeys(_TAGS, Master(0, node.term, node.predecessor))
    nodes_of = _refresh_terms(_TAGS, max_age_s)
    first_slot: dict[str, int] = {}
    for tag, node in nodes_of.items():
        slot = cluster.slot_of(tag)
        first_slot[node.term] = min(slot, first_slot.get(node.term, slot))
    return {
        tag: Master(first_slot[node.term], node.term, node.predecessor)
        for tag, node in nodes_of.items()
    }


def _refresh_terms(tags: Sequence[str], max_age_s: float) -> dict[str, Node]:
    """Return tag -> its node; read the terms that are older than ``max_age_s`` again."""
    key_of = {tag: f"{tag}}}:term" for tag in tags}
    now_s = clock.monotonic_s()
    if any(now_s - find_node(key).checked_s >= max_age_s for key in key_of.values()):
        for name, node in terms.known_nodes.items():
            outdated = node._replace(checked_s=now_s - terms.MAX_TERM_AGE_S)
            terms.known_nodes[name] = outdated
        redis.pipeline([("EXISTS", key) for key in key_of.values()])
    return {tag: find_node(key) for tag, key in key_of.items()}
