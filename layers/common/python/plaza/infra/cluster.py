"""Commands to a Redis Cluster: one round trip to each node, and no answer waited for twice.

redis-py keeps the topology and the connections. Its pipeline is not used: it asks the server where
the keys of each EVALSHA are, a round trip each, and what a node did not answer it sends again
command by command, a timeout each.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    MovedError,
    RedisError,
    SlotNotCoveredError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from plaza.infra.hot_keys import Command, bind, key_of_command
from plaza.infra.resends import note_resend
from plaza.infra.shards import tag_of

_MAX_TOPOLOGY_NODES = 2  # nodes that are asked for the topology before a request gives up
_MAX_STARTUP_NODES = 3  # likewise, of those that the URL names


def connect_cluster(url: str, **options: Any) -> Any:
    """A client of the cluster of which ``url`` names some nodes: ``redis://a:6379,b:6379``.

    Raises RedisClusterException when none of them tells the topology.
    """
    urls = spread_url(url)
    first, *others = random.sample(urls, min(_MAX_STARTUP_NODES, len(urls)))
    nodes = [_node(part.hostname or "", part.port or 6379) for part in map(urlsplit, others)]
    return redis.RedisCluster(
        url=first,
        startup_nodes=nodes,
        require_full_coverage=False,  # slots that nobody serves do not take the others with them
        retry=Retry(NoBackoff(), 0),
        **options,
    )


def spread_url(url: str) -> list[str]:
    """``redis://a:1,b:2/0``, which names several nodes of a cluster, as a URL each."""
    head, _, rest = url.partition("://")
    login, at, rest = rest.rpartition("@")
    hosts, slash, path = rest.partition("/")
    return [f"{head}://{login}{at}{host}{slash}{path}" for host in hosts.split(",")]


def send(client: Any, commands: Sequence[Command]) -> list[Any]:
    """The answers to ``commands``, errors among them, in order. One without a key goes anywhere.

    One round trip to each node, all at once. What was refused because the slot is elsewhere, or
    lost with its connection, is sent once more, to where it belongs by now: so commands have to
    be safe to repeat. A node that is silent is waited for once, for one timeout. In these cases
    the topology is asked for again. Raises RedisClusterException when nobody tells it.
    """
    answers = _send(client, dict(enumerate(commands)))
    if errors := [answer for answer in answers.values() if isinstance(answer, _TOPOLOGY_ERRORS)]:
        refresh_topology(client, errors)
    again = {i: c for i, c in enumerate(commands) if isinstance(answers[i], _RETRYABLE)}
    if any(isinstance(answers[i], RedisConnectionError) for i in again):
        note_resend()
    asked = {i: c for i, c in enumerate(commands) if type(answers[i]) is AskError}
    answers |= _send(client, again) | {i: _send_asking(client, c) for i, c in asked.items()}
    return [answers[i] for i in range(len(commands))]


def name_node(client: Any, command: Command) -> str:
    """The node that ``command`` goes to. Raises SlotNotCoveredError."""
    return str(_find_node(client, command).name)


def refresh_topology(client: Any, errors: Collection[BaseException] = ()) -> None:
    """Ask who has which slots: first who was named by ``errors``, never who caused them.

    One round trip, two nodes at most. Raises RedisClusterException when neither answers.
    """
    manager = client.nodes_manager
    named = {(e.host, e.port) for e in errors if isinstance(e, MovedError)}
    silent = {getattr(error, "node", None) for error in errors}
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


_TOPOLOGY_ERRORS = (
    ClusterDownError,
    MovedError,
    RedisConnectionError,
    RedisTimeoutError,
    SlotNotCoveredError,
)
_RETRYABLE = (MovedError, RedisConnectionError, SlotNotCoveredError)


def _send(client: Any, commands: dict[int, Command]) -> dict[int, Any]:
    """Number -> answer or error. Everything is written before anything is read."""
    answers: dict[int, Any] = {}
    by_node: dict[str, tuple[Any, list[int]]] = {}
    for number, command in commands.items():
        try:
            node = _find_node(client, command)
        except SlotNotCoveredError as error:
            answers[number] = error
        else:
            by_node.setdefault(node.name, (node, []))[1].append(number)
    written = []
    for node, numbers in by_node.values():
        pool, connection = node.redis_connection.connection_pool, None
        try:
            connection = pool.get_connection()
            bound = [bind(commands[number], node.name) for number in numbers]
            packed = connection.pack_commands(bound)
            connection.send_packed_command(packed)
        except (RedisConnectionError, RedisTimeoutError) as error:
            _release(pool, connection, broken=True)
            answers |= dict.fromkeys(numbers, _with_node(error, node))
        else:
            written.append((node, numbers, pool, connection))
    for node, numbers, pool, connection in written:
        broken = True
        try:
            for number in numbers:
                answers[number] = _read(node, connection, commands[number])
            broken = False
        except (RedisConnectionError, RedisTimeoutError) as error:
            missing = (number for number in numbers if number not in answers)
            answers |= dict.fromkeys(missing, _with_node(error, node))
        finally:
            _release(pool, connection, broken=broken)
    return answers


def _read(node: Any, connection: Any, command: Command) -> Any:
    try:
        return node.redis_connection.parse_response(connection, str(command[0]))
    except BusyLoadingError as error:  # an answer, although redis-py has it among lost connections
        return _with_node(error, node)
    except (RedisConnectionError, RedisTimeoutError):
        raise
    except RedisError as error:
        return error


def _send_asking(client: Any, command: Command) -> Any:
    """The answer to a command whose slot is on its way to another node."""
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
    error.node = node.name  # type: ignore[attr-defined]  # whom refresh_topology is not to ask
    return error


def _find_node(client: Any, command: Command) -> Any:
    key = key_of_command(command)
    if key is None:
        return client.get_random_primary_node()
    return client.nodes_manager.get_node_from_slot(_slot_of(tag_of(key)))


@lru_cache(maxsize=1024)
def _slot_of(tag: str) -> int:
    """The slot of all keys that begin with ``tag``: ``{<shard>``."""
    return key_slot(f"{tag}}}".encode())


def _node(host: str, port: int) -> Any:
    return ClusterNode(host, port)  # type: ignore[no-untyped-call]
