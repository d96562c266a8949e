"""The one way to Redis: a client with short timeouts behind a circuit breaker.

One connection per process: a Lambda serves one request at a time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from plaza.infra import clock, cluster
from plaza.infra.cluster import connect_cluster
from plaza.infra.dependencies import Dependency, DependencyDown, RetryRule
from plaza.infra.errors import UnknownProtocol
from plaza.infra.hot_keys import Argument, Command, NodeArguments, bind, key_of_command, sampler
from plaza.infra.lua import Script, load_script
from plaza.infra.process import Lazy, on_reset
from plaza.infra.resends import CountingRetry
from plaza.infra.settings import settings
from plaza.infra.shards import tag_of


class RedisDown(DependencyDown):
    """Redis is unreachable, or cannot do its work: down, loading, out of memory, failing over."""


class Node(NamedTuple):
    """What this process knows of a Redis node since it connected to it.

    ``run_id`` changes when the node restarts, and another node has another one. ``clock_offset_us`` is
    the node's TIME less this process's monotonic clock, never above the truth; ``measured_s`` when
    that was measured.
    """

    run_id: str
    clock_offset_us: int
    measured_s: float


class Call(NamedTuple):
    """One run of a script."""

    script: Script
    keys: Sequence[str]
    args: Sequence[Argument]


class Lock(NamedTuple):
    """A lock that was taken, and the token that tells whose it is."""

    key: str
    token: str


_RELEASE_LOCK = load_script(Path(__file__).with_name("scripts") / "release_lock.lua")

_OUTAGES = (
    AskError,  # and MOVED: the slot was on its way, twice
    BusyLoadingError,
    ClusterError,
    RedisConnectionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisTimeoutError,
    TryAgainError,
)
# The first words of errors that redis-py has no class for: a script runs for too long, nothing can
# be written to disk, a master has lost its replicas.
_OUTAGE_PREFIXES = {"BUSY", "MISCONF", "NOREPLICAS"}


def _is_outage(error: BaseException) -> bool:
    """Whether Redis failed; another error that it answered with is ours."""
    return isinstance(error, _OUTAGES) or str(error).partition(" ")[0] in _OUTAGE_PREFIXES


def _is_unsent(error: BaseException) -> bool:
    """Whether a connection could not be made, so that no command was sent on it."""
    text = str(error)
    return isinstance(error, RedisConnectionError | RedisTimeoutError) and (
        " connecting to " in text and text.startswith(("Error", "Timeout"))
    )


def _translate(error: Exception) -> Exception:
    """Return the error of ours for what a script answered."""
    return UnknownProtocol(str(error)) if str(error).startswith("PROTOCOL ") else error


def _close_stale_client(error: BaseException) -> None:
    """Close a client whose master became a replica, or that reaches no node it knows: the next one
    asks those that the URL names by then."""
    if isinstance(error, ReadOnlyError | RedisClusterException):
        forget_client()


def _is_read_only(error: BaseException) -> bool:
    """Whether it was a replica that refused, which has written nothing."""
    return isinstance(error, ReadOnlyError)


REDIS = Dependency(
    name="Redis",
    down=RedisDown,
    errors=(RedisError, RedisClusterException),
    is_outage=_is_outage,
    is_unsent=_is_unsent,
    translate=_translate,
    clean_up=_close_stale_client,
    # A connection of before a failover leads to what is a replica by now; a new one to the master.
    retries=(RetryRule(_is_read_only),),
)
_MAX_CLOCK_AGE_S = 300  # how long a measured clock is preferred to a later, lower measurement

_COMMANDS_PER_PACK = 32  # commands

_client: Lazy[Any] = Lazy(
    lambda: connect(settings().redis_url, cluster=settings().redis_cluster),
    close=lambda client: client.close(),
)
_nodes: dict[str, Node] = {}
on_reset(_nodes.clear)


def client() -> Any:
    """The redis-py client of this process, single node or cluster. Connects on first use."""
    return _client.get()


def connect(url: str, *, cluster: bool) -> Any:
    """A client for ``url``. It repeats what it sent once, and only if the connection was lost."""
    timeout_s = settings().redis_timeout_s
    options: dict[str, Any] = {
        "decode_responses": True,
        "protocol": 2,
        "driver_info": None,  # two round trips a connection, to say what is on it
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
    }
    if cluster:
        return connect_cluster(url, redis_connect_func=_read_node_info, **options)
    options["redis_connect_func"] = _on_connect
    retry = CountingRetry(NoBackoff(), 1, supported_errors=(RedisConnectionError,))
    return redis.Redis.from_url(url, retry=retry, single_connection_client=True, **options)


def forget_client() -> None:
    """Close the connection; the next call opens a new one."""
    _client.reset()
    _nodes.clear()


def _on_connect(connection: Any) -> None:
    connection.on_connect()
    _read_node_info(connection)


def _read_node_info(connection: Any) -> None:
    """Read the run_id and the clock of the node behind a new connection. One round trip."""
    connection.send_packed_command(
        connection.pack_commands([("TIME",), ("INFO", "server")]), check_health=False
    )
    seconds, microseconds = connection.read_response()
    now_s = clock.monotonic_s()
    info = connection.read_response()
    text = info if isinstance(info, str) else bytes(info).decode()
    found = re.search(r"^run_id:(\w+)", text, re.MULTILINE)
    clock_offset_us = int(seconds) * 1_000_000 + int(microseconds) - int(now_s * 1e6)
    _nodes[_name_of(connection)] = Node(found[1] if found else "", clock_offset_us, now_s)


def _name_of(connection: Any) -> str:
    return f"{connection.host}:{connection.port}" if settings().redis_cluster else ""


def find_node(key: str) -> Node:
    """The node that has ``key``. No round trip once this process is connected to it.

    Raises RedisDown.
    """
    name = _name_node_of(key)
    if name not in _nodes:
        execute("EXISTS", key)  # connects
        name = _name_node_of(key)
    if name not in _nodes:
        raise RedisDown(f"Redis is away: no connection to {name or 'it'}")
    return _nodes[name]


def observe_clock(key: str, now_us: int) -> None:
    """Take the TIME in a reply that was just received as a measurement of the node's clock.

    A reply takes time, so a measurement is never too high: the highest of five minutes counts.
    """
    name = _name_node_of(key)
    node, now_s = _nodes.get(name), clock.monotonic_s()
    clock_offset_us = now_us - int(now_s * 1e6)
    if node and (
        clock_offset_us > node.clock_offset_us or now_s - node.measured_s > _MAX_CLOCK_AGE_S
    ):
        _nodes[name] = Node(node.run_id, clock_offset_us, now_s)


def _name_node_of(key: str) -> str:
    if not settings().redis_cluster:
        return ""
    return REDIS.call(lambda: _name_node(("EXISTS", key)))


def execute(*command: Argument) -> Any:
    """One command; one without a key asks all nodes of a cluster that it concerns.

    Raises RedisDown.
    """
    hot_key_report = sampler.sample((command,))
    of_nodes = settings().redis_cluster and key_of_command(command) is None
    if not of_nodes and (hot_key_report or settings().redis_cluster):
        return REDIS.call(lambda: _pipeline([command], {}, hot_key_report))[0]
    return REDIS.call(lambda: client().execute_command(*command))


def run(script: Script, keys: Sequence[str], args: Sequence[Argument | NodeArguments] = ()) -> Any:
    """One run of ``script``, one round trip once Redis knows it. Raises RedisDown."""

    command = ("EVALSHA", script.sha, len(keys), *keys, *args)
    hot_key_report = sampler.sample((command,))
    if hot_key_report or settings().redis_cluster:
        return REDIS.call(
            lambda: _pipeline([command], {script.sha: script.source}, hot_key_report)
        )[0]

    def evaluate() -> Any:
        redis_client = client()
        try:
            return redis_client.execute_command(*bind(command, ""))
        except NoScriptError:
            text = ("EVAL", script.source, *command[2:])
            return redis_client.execute_command(*bind(text, ""))

    return REDIS.call(evaluate)


def run_on_node(
    script: Script, keys: Sequence[str], args_for: Callable[[Node], Sequence[Argument]]
) -> Any:
    """One run of ``script`` with arguments that depend on the node that runs it.

    ``args_for`` is called for each copy that is sent: a command that is sent again to another node
    has that node's arguments. The last call was for the node that answered, unless the connection
    to a single Redis was lost meanwhile. Raises RedisDown.
    """
    return run(script, keys, (lambda name: args_for(_nodes.get(name) or find_node(keys[0])),))


def run_all(calls: Sequence[Call], commands: Sequence[Command] = ()) -> list[Any]:
    """Many runs, then ``commands``, in one round trip (of a cluster: one a node); answers in order.

    All or nothing as far as the caller can tell: raises RedisDown when any of them failed by it.
    Every script is safe to repeat, so the caller may repeat all of it.
    """
    sources = {call.script.sha: call.script.source for call in calls}
    sent = [("EVALSHA", c.script.sha, len(c.keys), *c.keys, *c.args) for c in calls] + [*commands]
    if not sent:
        return []
    hot_key_report = sampler.sample(sent)
    return REDIS.call(lambda: _pipeline(sent, sources, hot_key_report))


def claim_all(keys: Sequence[str], ttl_s: float) -> list[str | None]:
    """Claim each of ``keys`` for ``ttl_s``: the caller's token, None where another has the key.

    Who has a key is read from it: the reply of SET says no to a command that was sent again
    because its first reply was lost. One round trip. Raises RedisDown.
    """
    token = secrets.token_hex(8)
    ttl_ms = int(ttl_s * 1000)
    commands: list[Command] = []
    for key in keys:
        commands += [("SET", key, token, "NX", "PX", ttl_ms), ("GET", key)]
    owners = pipeline(commands)[1::2]
    return [token if owner == token else None for owner in owners]


def try_lock(key: str, ttl_s: float) -> Lock | None:
    """The lock under ``key``, None when somebody else has it. It ends by itself after ``ttl_s``.

    One round trip. Raises RedisDown.
    """
    [token] = claim_all([key], ttl_s)
    return Lock(key, token) if token else None


def unlock(lock: Lock) -> bool:
    """Give the lock back; False when it had ended, and may be another's by now.

    One round trip. Raises RedisDown.
    """
    return bool(run(_RELEASE_LOCK, (lock.key,), (lock.token,)))


def delete_commands(keys: Iterable[str]) -> list[tuple[Argument, ...]]:
    """The fewest commands that delete ``keys``: one, but a cluster takes a tag at a time."""
    by_tag: dict[str, list[str]] = {}
    for key in keys:
        by_tag.setdefault(tag_of(key) if settings().redis_cluster else "", []).append(key)
    return [("DEL", *together) for together in by_tag.values()]


def pipeline(commands: Sequence[Command]) -> list[Any]:
    """Many commands in one round trip (of a cluster: one a node); answers in order.

    Raises RedisDown.
    """
    return run_all((), commands)


def nodes() -> dict[str, Any]:
    """Name -> a client of each node that has keys of its own: of a cluster, the primaries.

    Raises RedisDown.
    """
    if not settings().redis_cluster:
        return {"redis": client()}

    def connect_all() -> dict[str, Any]:
        return {node.name: client().get_redis_connection(node) for node in client().get_primaries()}

    return REDIS.call(connect_all)


def send_to_node(node: Any, commands: Sequence[Command]) -> list[Any]:
    """Many commands to one of the ``nodes`` in one round trip; what it refuses is an answer too.

    Raises RedisDown.
    """

    def send() -> list[Any]:
        pipe = node.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        try:
            return list(pipe.execute(raise_on_error=False))
        except (RedisConnectionError, RedisTimeoutError):
            if settings().redis_cluster:
                cluster.refresh_topology(client())
            raise

    return REDIS.call(send)


def read_topology_epoch() -> int:
    """A number that changes whenever a node takes slots over or a single Redis restarts.

    One round trip. Raises RedisDown.
    """
    if settings().redis_cluster:
        [info] = pipeline([("CLUSTER", "INFO")])
        found = re.search(r"cluster_current_epoch:(\d+)", info)
        return int(found[1]) if found else 0
    execute("PING")  # a new connection learns the run_id
    return int(find_node("").run_id[:15] or "0", 16)


def _pipeline(
    commands: Sequence[Command],
    sources: Mapping[str, str],
    hot_key_report: Sequence[Command] = (),
) -> list[Any]:
    """The answers to ``commands``. ``hot_key_report`` goes along; what comes of it is nobody's concern.

    A script that a node doesn't know goes there as text, once; the next trip has it by its name.
    """
    answers = _send([*commands, *hot_key_report])[: len(commands)]
    unknown = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
    if unknown:
        again, taught = [], set()
        for command in (commands[index] for index in unknown):
            lesson = (command[1], _name_node(command))
            new = lesson not in taught
            again.append(("EVAL", sources[str(command[1])], *command[2:]) if new else command)
            taught.add(lesson)
        for index, answer in zip(unknown, _send(again), strict=True):
            answers[index] = answer
    for answer in answers:
        for part in answer if isinstance(answer, list) else (answer,):
            if isinstance(part, Exception):  # a script that serves several targets answers for each
                raise part
    return answers


def _send(commands: Sequence[Command]) -> list[Any]:
    """Answers, errors among them, in order. One round trip, of a cluster one to each node."""
    if settings().redis_cluster:
        return cluster.send(client(), commands)
    pool = client().connection_pool
    connection = pool.get_connection()
    try:
        answers: list[Any] = connection.retry.call_with_retry(
            lambda: _exchange(connection, commands), lambda _: connection.disconnect()
        )
        return answers
    finally:
        pool.release(connection)


def _exchange(connection: Any, commands: Sequence[Command]) -> list[Any]:
    """The answers, in order. Redis works on the first commands while the others are packed."""
    parts = range(0, len(commands), _COMMANDS_PER_PACK)
    packed = (
        connection.pack_commands([bind(c, "") for c in commands[i : i + _COMMANDS_PER_PACK]])
        for i in parts
    )
    connection.send_packed_command(chain.from_iterable(packed))
    answers, parse = [], client().parse_response
    for command in commands:
        try:
            answers.append(parse(connection, command[0]))
        except ResponseError as error:
            answers.append(error)
    return answers


def _name_node(command: Command) -> str:
    return cluster.name_node(client(), command) if settings().redis_cluster else ""
