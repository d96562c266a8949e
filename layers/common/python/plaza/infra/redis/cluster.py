"""Commands to a Redis Cluster: one round trip to each node, one timeout for a silent node.

redis-py maintains the topology and the connections. Its pipeline is not used: it reads the keys of
each EVALSHA from the server, and after a timeout it sends each command again, a timeout each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from os import getpid
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, LoadBalancingStrategy
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    MovedError,
    RedisError,
    SlotNotCoveredError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from plaza.infra.redis import errors
from plaza.infra.redis.commands import Command, bind, key_of_command
from plaza.infra.redis.resends import note_resend
from plaza.infra.redis.shards import tag_of

RANDOM_REPLICA = LoadBalancingStrategy.RANDOM_REPLICA  # connections to replicas send READONLY
_MAX_TOPOLOGY_NODES = 2  # nodes that a request reads the topology from before it fails
_MAX_STARTUP_NODES = 3  # the same for a new client, out of the nodes in the URL


class Roles(NamedTuple):
    """How the roles of nodes are read along with commands: ``command`` goes first to each node for
    whose name ``is_due``; ``observe`` gets the name and the reply."""

    command: Command
    is_due: Callable[[str], bool]
    observe: Callable[[str, Any], None]


def connect_cluster(url: str, **options: Any) -> Any:
    """Return a client of the cluster whose ``url`` names some nodes: ``redis://a:6379,b:6379``.
    Raises RedisClusterException if none of them returns the topology."""
    urls = spread_url(url)
    first, *others = random.sample(urls, min(_MAX_STARTUP_NODES, len(urls)))
    nodes = [_node(part.hostname or "", part.port or 6379) for part in map(urlsplit, others)]
    return redis.RedisCluster(
        url=first,
        startup_nodes=nodes,
        require_full_coverage=False,  # the other slots work while some have no node
        retry=Retry(NoBackoff(), 0),
        **options,
    )


def spread_url(url: str) -> list[str]:
    """Split ``redis://a:1,b:2/0``, a URL of several nodes, into one URL per node."""
    head, _, rest = url.partition("://")
    login, at, rest = rest.rpartition("@")
    hosts, slash, path = rest.partition("/")
    return [f"{head}://{login}{at}{host}{slash}{path}" for host in hosts.split(",")]


def send(client: Any, commands: Sequence[Command], roles: Roles | None = None) -> list[Any]:
    """Send ``commands`` and return the replies in order, errors included; ``roles`` are read on the
    way.

    One round trip to each node, in parallel; a command without a key goes to any node. A command
    whose slot has moved or whose connection was lost is sent once more, to the slot's current
    node: commands have to be safe to repeat. A silent node costs one timeout. Each of these errors
    refreshes the topology, which raises RedisClusterException if no node returns it.
    """
    replies = _send(client, dict(enumerate(commands)), roles)
    if failed := [reply for reply in replies.values() if isinstance(reply, _TOPOLOGY_ERRORS)]:
        refresh_topology(client, failed)
    again = {i: c for i, c in enumerate(commands) if isinstance(replies[i], _RETRYABLE)}
    if any(isinstance(replies[i], RedisConnectionError) for i in again):
        note_resend()
    redirected = {i: c for i, c in enumerate(commands) if type(replies[i]) is AskError}
    replies |= _send(client, again, roles)
    replies |= {i: _send_asking(client, c) for i, c in redirected.items()}
    return [replies[i] for i in range(len(commands))]


def name_node(client: Any, command: Command) -> str:
    """Return the name of the node that serves ``command``. Raises SlotNotCoveredError."""
    return str(_find_node(client, command).name)


def refresh_topology(client: Any, failures: Collection[BaseException] = ()) -> None:
    """Read the slots of all nodes, first from nodes that ``failures`` name, never from failed ones.
    One round trip to each of two nodes at most. Raises RedisClusterException if both fail."""
    manager = client.nodes_manager
    named = {(e.host, e.port) for e in failures if isinstance(e, MovedError)}
    silent = {getattr(error, "node", None) for error in failures}
    known = [node for node in manager.nodes_cache.values() if node.name not in silent]
    candidates = [_node(*address) for address in named]
    candidates += random.sample(known, len(known))
    chosen = (
        candidates[:_MAX_TOPOLOGY_NODES] or list(manager.nodes_cache.values())[:_MAX_TOPOLOGY_NODES]
    )
    first, others = chosen[:1], chosen[1:]
    manager.startup_nodes = {node.name: node for node in first}
    manager.initialize(
        additional_startup_nodes_info=[(node.host, node.port) for node in others],
        disconnect_startup_nodes_pools=False,
    )


_TOPOLOGY_ERRORS = errors.classes_of(errors.ReplyMeaning.TOPOLOGY)
_RETRYABLE = errors.classes_of(errors.ReplyMeaning.RESENT)


def _send(client: Any, commands: dict[int, Command], roles: Roles | None) -> dict[int, Any]:
    """Return number -> reply or error. All commands are written before any reply is read."""
    replies: dict[int, Any] = {}
    by_node: dict[str, tuple[Any, list[int]]] = {}
    for number, command in commands.items():
        try:
            node = _find_node(client, command)
        except SlotNotCoveredError as error:
            replies[number] = error
        else:
            by_node.setdefault(node.name, (node, []))[1].append(number)
    written = []
    for node, numbers in by_node.values():
        pool, connection = node.redis_connection.connection_pool, None
        try:
            connection = pool.get_connection()
            bound = [bind(commands[number], node.name) for number in numbers]
            reads_role = roles is not None and roles.is_due(node.name)
            if roles and reads_role:
                bound.insert(0, bind(roles.command, node.name))
            packed = connection.pack_commands(bound)
            connection.send_packed_command(packed)
        except (RedisConnectionError, RedisTimeoutError) as error:
            _release(pool, connection, broken=True)
            replies |= dict.fromkeys(numbers, _with_node(error, node))
        else:
            written.append((node, numbers, pool, connection, reads_role))
    for node, numbers, pool, connection, reads_role in written:
        broken = True
        try:
            if roles and reads_role:
                roles.observe(node.name, _read_role(connection))
            for number in numbers:
                replies[number] = _read(node, connection, commands[number])
            broken = False
        except (RedisConnectionError, RedisTimeoutError) as error:
            missing = (number for number in numbers if number not in replies)
            replies |= dict.fromkeys(missing, _with_node(error, node))
        finally:
            _release(pool, connection, broken=broken)
    return replies


def _read(node: Any, connection: Any, command: Command) -> Any:
    try:
        return node.redis_connection.parse_response(connection, str(command[0]))
    except BusyLoadingError as error:  # a reply, although redis-py derives it from ConnectionError
        return _with_node(error, node)
    except (RedisConnectionError, RedisTimeoutError):
        raise
    except RedisError as error:
        return error


def _read_role(connection: Any) -> Any:
    try:
        return connection.read_response()
    except (RedisConnectionError, RedisTimeoutError):
        raise
    except RedisError as error:
        return error


def _send_asking(client: Any, command: Command) -> Any:
    """Send a command whose slot is moving to another node; return its reply or error."""
    try:
        return client.execute_command(*bind(command, name_node(client, command)))
    except RedisError as error:
        return error


def _release(pool: Any, connection: Any, *, broken: bool) -> None:
    if connection is not None:
        if broken:
            connection.disconnect()
        pool.release(connection)


def _with_node(error: Exception, node: Any) -> Exception:
    error.node = node.name  # type: ignore[attr-defined]  # refresh_topology skips this node
    return error


def _find_node(client: Any, command: Command) -> Any:
    key = key_of_command(command)
    if key is None:
        return client.get_random_primary_node()
    slot, replicas = slot_of(tag_of(key)), client.load_balancing_strategy is not None
    node = client.nodes_manager.get_node_from_slot(slot)
    if not replicas:
        return node
    # One replica of a slot for all commands of this process, so that they run in order.
    others = client.nodes_manager.slots_cache[slot][1:]
    if not others:
        raise SlotNotCoveredError(f"{node.name} has no replica")
    return others[getpid() % len(others)]


@lru_cache(maxsize=1024)
def slot_of(tag: str) -> int:
    """Return the slot of all keys that begin with ``tag`` (``{<shard>``)."""
    return key_slot(f"{tag}}}".encode())


def _node(host: str, port: int) -> Any:
    return ClusterNode(host, port)  # type: ignore[no-untyped-call]
