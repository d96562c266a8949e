"""The client of Redis: one connection per process, short timeouts, a circuit breaker.

Reports are sent along with ordinary commands: counts of hot keys, and changes of the breakers of
this process. They cost no round trip and go to the shard of the command.

{<shard>}:breakers  zset  <dependency>:<function>:<process>:<state> -> time in ms
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import redis
from hiredis import pack_command
from redis._parsers.hiredis import NOT_ENOUGH_DATA
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from plaza.infra.aws import tls
from plaza.infra.redis import cluster
from plaza.infra.redis.cluster import RANDOM_REPLICA, connect_cluster
from plaza.infra.redis.connections import connection_options
from plaza.infra.redis.hot_keys import (
    Argument,
    Command,
    NodeArguments,
    bind,
    key_of_command,
    sampler,
)
from plaza.infra.redis.resends import CountingRetry, note_resend
from plaza.infra.redis.scripts import SHARED, Script, load_script
from plaza.infra.redis.shards import SHARDS, tag_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.dependencies import Dependency, DependencyDown, RetryRule, unreported
from plaza.infra.runtime.errors import UnknownProtocol
from plaza.infra.runtime.observability import FUNCTION
from plaza.infra.runtime.process import Lazy, on_reset
from plaza.infra.runtime.settings import settings


class RedisDown(DependencyDown):
    """Redis is unreachable or cannot do its work: loading, out of memory, failing over."""


class Node(NamedTuple):
    """A master that this process is connected to: its reign and its clock.

    ``reign`` is its ``master_replid``: each promotion and each restart makes a new one. Of a
    promoted replica, ``predecessor`` is the reign of the master before it. Both were read at
    ``checked_s`` of this process's monotonic clock. ``run_id`` names the process of the node.
    ``clock_offset_us`` is a lower bound of the node's TIME minus this process's monotonic clock,
    measured at ``measured_s``.
    """

    reign: str
    predecessor: str
    checked_s: float
    run_id: str
    clock_offset_us: int
    measured_s: float

    def deadline_us(self, until_s: float) -> int:
        """Return the time ``until_s`` of this process's monotonic clock by the node's clock.

        A node whose clock is ahead of this process's by more than ``MAX_CLOCK_LEAD_US`` gets an
        earlier time, which it may have passed: it must not order changes by its clock.
        """
        left_us = int((until_s - clock.monotonic_s()) * 1e6)
        last_us = clock.now_us() + left_us + MAX_CLOCK_LEAD_US
        return min(self.clock_offset_us + int(until_s * 1e6), last_us)


class Call(NamedTuple):
    """One run of a script."""

    script: Script
    keys: Sequence[str]
    args: Sequence[Argument]


class Master(NamedTuple):
    """The master of a shard, named by the lowest slot of its shards (0: a single Redis)."""

    first_slot: int
    reign: str
    predecessor: str


# ``run_all``, or a function that reads elsewhere.
RunAll = Callable[[Sequence[Call], Sequence[Command]], list[Any]]


class Lock(NamedTuple):
    """A lock and the token of its owner."""

    key: str
    token: str


_RELEASE_LOCK = load_script(SHARED / "release_lock.lua")

_OUTAGES = (
    AskError,  # and MOVED: the slot was moving at both attempts
    BusyLoadingError,
    ClusterError,
    RedisConnectionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisTimeoutError,
    TryAgainError,
)
# The first words of errors without a class in redis-py: a script runs for too long, the disk is not
# writable, a master has too few replicas.
_OUTAGE_PREFIXES = {"BUSY", "MISCONF", "NOREPLICAS"}


def _is_outage(error: BaseException) -> bool:
    """Return whether Redis failed; any other error is a reply of a working server."""
    return isinstance(error, _OUTAGES) or str(error).partition(" ")[0] in _OUTAGE_PREFIXES


def _is_unsent(error: BaseException) -> bool:
    """Return whether the connection could not be opened, so that no command was sent."""
    text = str(error)
    return isinstance(error, AuthenticationError) or (
        isinstance(error, RedisConnectionError | RedisTimeoutError)
        and " connecting to " in text
        and text.startswith(("Error", "Timeout"))
    )


def _describe(error: BaseException) -> str:
    return type(error).__name__ + tls.describe_failure(error)


def _translate(error: Exception) -> Exception:
    """Return UnknownProtocol for that error of a script, else the error."""
    return UnknownProtocol(str(error)) if str(error).startswith("PROTOCOL ") else error


def _close_stale_client(error: BaseException) -> None:
    """Close the client if its master became a replica or none of its nodes replies; the next one
    reads the topology from the nodes of the URL."""
    if isinstance(error, ReadOnlyError | RedisClusterException):
        forget_client()


def _is_read_only(error: BaseException) -> bool:
    """Return whether a replica refused the command, which then changed nothing."""
    return isinstance(error, ReadOnlyError)


REDIS = Dependency(
    name="Redis",
    down=RedisDown,
    errors=lambda: (RedisError, RedisClusterException),
    is_outage=_is_outage,
    is_unsent=_is_unsent,
    describe=_describe,
    translate=_translate,
    clean_up=_close_stale_client,
    # After a failover an old connection leads to a replica, a new one to the master.
    retries=(RetryRule(_is_read_only),),
)
MAX_CLOCK_LEAD_US = 1_000_000  # of a node's clock over this process's
_TAGS = [f"{{{shard}" for shard in range(SHARDS)]
_MAX_REIGN_AGE_S = 1.0  # a reign is read again with the next command after this time
# Lower case: redis-py parses the reply to INFO, and would read a reign of digits as a number.
_READ_ROLE: Command = ("info", "replication")
_MAX_CLOCK_AGE_S = 300  # how long a measurement is preferred to a later, lower one
_COMMANDS_PER_PACK = 128
MAX_BREAKER_REPORTS = 100  # of one shard
BREAKER_REPORT_TTL_S = 3_600

_client: Lazy[Any] = Lazy(
    lambda: connect(settings().redis_url, cluster=settings().redis_cluster),
    close=lambda client: client.close(),
)
_reader: Lazy[Any] = Lazy(
    lambda: connect(
        settings().redis_reader_url or "", cluster=settings().redis_cluster, to_replicas=True
    ),
    close=lambda client: client.close(),
)
_process = Lazy(lambda: secrets.token_hex(4))  # a name of this process
_nodes: dict[str, Node] = {}
on_reset(_nodes.clear)


def client() -> Any:
    """Return the redis-py client of this process, single node or cluster."""
    return _client.get()


def connect(url: str, *, cluster: bool, to_replicas: bool = False) -> Any:
    """Return a client for ``url``. It sends a command again once, only after a lost connection."""
    timeout_s = settings().redis_timeout_s
    url, connection_class = connection_options(url)
    options: dict[str, Any] = connection_class | {
        "decode_responses": True,
        "protocol": 2,
        "driver_info": None,  # saves two CLIENT SETINFO round trips per connection
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
    }
    if (
        to_replicas
    ):  # their clock differs from the clock of the node that decides, and they have no reign
        if cluster:
            return connect_cluster(url, load_balancing_strategy=RANDOM_REPLICA, **options)
    elif cluster:
        return connect_cluster(url, redis_connect_func=_read_node_info, **options)
    else:
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
    """Read the run_id, the clock and the reign of a newly connected node. One round trip. Raises
    ReadOnlyError for a replica, unless it is one of a cluster."""
    asked = [("TIME",), ("INFO", "server"), _READ_ROLE]
    connection.send_packed_command(connection.pack_commands(asked), check_health=False)
    seconds, microseconds = connection.read_response()
    now_s = clock.monotonic_s()
    info, role = connection.read_response(), connection.read_response()
    clock_offset_us = int(seconds) * 1_000_000 + int(microseconds) - int(now_s * 1e6)
    name = _name_of(connection)
    _nodes[name] = Node("", "", 0.0, _read_field("run_id", info), clock_offset_us, now_s)
    _observe_role(name, role)


def _read_field(name: str, info: str | bytes) -> str:
    """Return the value of a field in a reply of INFO, "" without it."""
    text = info if isinstance(info, str) else info.decode()
    match = re.search(rf"^{name}:(\w+)", text, re.MULTILINE)
    return match[1] if match else ""


def _is_role_due(name: str) -> bool:
    """Return whether the next commands to a node have to be sent with ``_READ_ROLE`` first."""
    node = _nodes.get(name)
    return node is not None and (
        not node.reign or clock.monotonic_s() - node.checked_s >= _MAX_REIGN_AGE_S
    )


def _observe_role(name: str, info: str | bytes | Exception) -> None:
    """Use a node's reply to ``_READ_ROLE``, unless it is an error. A replica has no reign; in a
    cluster it redirects commands. Raises ReadOnlyError for a single Redis that became one, so that
    the client is closed."""
    if isinstance(info, Exception):  # BUSY: the commands after it get the same error
        return
    node, is_replica = _nodes[name], _read_field("role", info) == "slave"
    _nodes[name] = node._replace(
        reign="" if is_replica else _read_field("master_replid", info) or node.run_id,
        predecessor=_read_field("master_replid2", info),
        checked_s=clock.monotonic_s(),
    )
    if is_replica and not settings().redis_cluster:
        raise ReadOnlyError("the node is a replica")


def _name_of(connection: Any) -> str:
    return f"{connection.host}:{connection.port}" if settings().redis_cluster else ""


def find_node(key: str) -> Node:
    """Return the master that stores ``key``. No round trip if this process is connected to it.
    Raises RedisDown."""
    name = _name_node_of(key)
    if not _has_reign(name):
        execute("EXISTS", key)  # connects; a replica redirects to its master
        name = _name_node_of(key)
    if not _has_reign(name):
        raise RedisDown(f"Redis is unavailable: no connection to a master at {name or 'it'}")
    return _nodes[name]


def _has_reign(name: str) -> bool:
    return name in _nodes and bool(_nodes[name].reign)


def observe_clock(key: str, now_us: int) -> None:
    """Use the TIME in a reply that was just received as a measurement of the node's clock.

    The reply's way makes a measurement too low, never too high: the highest of 5 minutes is kept.
    """
    name = _name_node_of(key)
    node, now_s = _nodes.get(name), clock.monotonic_s()
    clock_offset_us = now_us - int(now_s * 1e6)
    if node and (
        clock_offset_us > node.clock_offset_us or now_s - node.measured_s > _MAX_CLOCK_AGE_S
    ):
        _nodes[name] = node._replace(clock_offset_us=clock_offset_us, measured_s=now_s)


def _name_node_of(key: str) -> str:
    if not settings().redis_cluster:
        return ""
    return REDIS.call(partial(_name_node, ("EXISTS", key)))


def breakers_key(tag: str) -> str:
    """Return the key of the changes that were sent along with keys of ``tag`` (``{7}``)."""
    return f"{tag}:breakers"


def _take_reports(commands: Sequence[Command]) -> list[Command]:
    """Return what to send along with ``commands``, mostly nothing."""
    reports = sampler.sample(commands)
    if unreported and REDIS.state == "closed" and (key := key_of_command(commands[0])):
        reports_key = breakers_key(tag_of(key) + "}")
        members = (
            (change.at_ms, f"{change.dependency}:{FUNCTION}:{_process.get()}:{change.state}")
            for change in unreported
        )
        reports += [
            ("ZADD", reports_key, *(part for member in members for part in member)),
            ("ZREMRANGEBYRANK", reports_key, 0, -MAX_BREAKER_REPORTS - 1),
            ("EXPIRE", reports_key, BREAKER_REPORT_TTL_S),
        ]
        unreported.clear()
    return reports


def execute(*command: Argument) -> Any:
    """Run one command; without a key, on all nodes of a cluster that it concerns.
    One round trip. Raises RedisDown."""
    reports = _take_reports((command,))
    if settings().redis_cluster and key_of_command(command) is None:
        return REDIS.call(partial(client().execute_command, *command))
    if reports or settings().redis_cluster:
        return REDIS.call(partial(_pipeline, [command], {}, reports))[0]
    return REDIS.call(partial(_execute, command))


def run(script: Script, keys: Sequence[str], args: Sequence[Argument | NodeArguments] = ()) -> Any:
    """Run ``script``. One round trip, two if Redis has not cached it. Raises RedisDown."""
    command = ("EVALSHA", script.sha, len(keys), *keys, *args)
    reports = _take_reports((command,))
    if reports or settings().redis_cluster:
        sources = {script.sha: script.source}
        return REDIS.call(partial(_pipeline, [command], sources, reports))[0]
    return REDIS.call(partial(_evaluate, command, script))


def run_on_node(
    script: Script, keys: Sequence[str], args_for: Callable[[Node], Sequence[Argument]]
) -> Any:
    """Run ``script`` with arguments that depend on the node that runs it.

    ``args_for`` is called for each copy that is sent, also for one sent again to another node. The
    last call was for the node that replied, unless the connection to a single Redis was lost
    meanwhile. Raises RedisDown.
    """
    return run(script, keys, (lambda name: args_for(_nodes.get(name) or find_node(keys[0])),))


def run_all(calls: Sequence[Call], commands: Sequence[Command] = ()) -> list[Any]:
    """Run scripts, then ``commands``; return the replies in order.

    One round trip, in a cluster one to each node. Raises RedisDown if one of them failed by an
    outage; others may have run, but every script is safe to repeat, so the caller may repeat all.
    """
    sources = {call.script.sha: call.script.source for call in calls}
    sent = [("EVALSHA", c.script.sha, len(c.keys), *c.keys, *c.args) for c in calls] + [*commands]
    if not sent:
        return []
    reports = _take_reports(sent)
    return REDIS.call(partial(_pipeline, sent, sources, reports))


def run_all_on_replicas(
    first: Sequence[Command], calls: Sequence[Call], commands: Sequence[Command]
) -> list[Any]:
    """Run the commands ``first``, then scripts and ``commands``, on replicas; return all replies.

    All of them only read. One round trip, in a cluster one to each node. Raises errors of redis-py:
    the caller turns to the master.
    """
    sources = {call.script.sha: call.script.source for call in calls}
    scripts = [("EVALSHA_RO", c.script.sha, len(c.keys), *c.keys, *c.args) for c in calls]

    def send(sent: Sequence[Command]) -> list[Any]:
        if settings().redis_cluster:
            return cluster.send(_reader.get(), sent)
        return _exchange(_reader.get(), sent)

    try:
        return _pipeline([*first, *scripts, *commands], sources, send=send)
    except Exception:
        _reader.reset()
        raise


def claim_all(keys: Sequence[str], ttl_s: float) -> list[str | None]:
    """Claim each key for ``ttl_s``; return the caller's token, None for a key claimed by another.

    The owner is read with GET: the reply of SET NX is a refusal if the command was sent twice
    because the first reply was lost. One round trip. Raises RedisDown.
    """
    token = secrets.token_hex(8)
    ttl_ms = int(ttl_s * 1000)
    commands: list[Command] = []
    for key in keys:
        commands += [("SET", key, token, "NX", "PX", ttl_ms), ("GET", key)]
    owners = pipeline(commands)[1::2]
    return [token if owner == token else None for owner in owners]


def try_lock(key: str, ttl_s: float) -> Lock | None:
    """Lock ``key`` for ``ttl_s``; return None if another caller has the lock.
    One round trip. Raises RedisDown."""
    [token] = claim_all([key], ttl_s)
    return Lock(key, token) if token else None


def unlock(lock: Lock) -> bool:
    """Release the lock; return False if it had expired. One round trip. Raises RedisDown."""
    return bool(run(_RELEASE_LOCK, (lock.key,), (lock.token,)))


def delete_commands(keys: Iterable[str]) -> list[tuple[Argument, ...]]:
    """Return the commands that delete ``keys``: one, in a cluster one per hash tag."""
    if not settings().redis_cluster:
        return [("UNLINK", *together)] if (together := tuple(keys)) else []
    by_tag: dict[str, list[str]] = {}
    for key in keys:
        by_tag.setdefault(tag_of(key), []).append(key)
    return [("UNLINK", *together) for together in by_tag.values()]


def pipeline(commands: Sequence[Command]) -> list[Any]:
    """Run commands; return the replies in order. One round trip, in a cluster one to each node.
    Raises RedisDown."""
    return run_all((), commands)


def nodes() -> dict[str, Any]:
    """Return name -> client of each primary node. Raises RedisDown."""
    if not settings().redis_cluster:
        return {"redis": client()}

    def connect_all() -> dict[str, Any]:
        return {node.name: client().get_redis_connection(node) for node in client().get_primaries()}

    return REDIS.call(connect_all)


def send_to_node(node: Any, commands: Sequence[Command]) -> list[Any]:
    """Run commands on one of the ``nodes``; return the replies in order, errors included.
    One round trip. Raises RedisDown."""

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


def read_masters(max_age_s: float = _MAX_REIGN_AGE_S) -> dict[str, Master]:
    """Return hash tag (``{7``) -> the master of each shard, as read at most ``max_age_s`` ago.

    No round trip when all reigns are younger, else one to each node. Raises RedisDown.
    """
    if not settings().redis_cluster:
        node = _refresh_reigns(_TAGS[:1], max_age_s)[_TAGS[0]]
        return dict.fromkeys(_TAGS, Master(0, node.reign, node.predecessor))
    nodes_of = _refresh_reigns(_TAGS, max_age_s)
    first_slot: dict[str, int] = {}
    for tag, node in nodes_of.items():
        slot = cluster.slot_of(tag)
        first_slot[node.reign] = min(slot, first_slot.get(node.reign, slot))
    return {
        tag: Master(first_slot[node.reign], node.reign, node.predecessor)
        for tag, node in nodes_of.items()
    }


def _refresh_reigns(tags: Sequence[str], max_age_s: float) -> dict[str, Node]:
    """Return tag -> its node; read the reigns that are older than ``max_age_s`` again."""
    key_of = {tag: f"{tag}}}:reign" for tag in tags}
    now_s = clock.monotonic_s()
    if any(now_s - find_node(key).checked_s >= max_age_s for key in key_of.values()):
        for name, node in _nodes.items():
            _nodes[name] = node._replace(checked_s=now_s - _MAX_REIGN_AGE_S)
        pipeline([("EXISTS", key) for key in key_of.values()])
    return {tag: find_node(key) for tag, key in key_of.items()}


def _pipeline(
    commands: Sequence[Command],
    sources: Mapping[str, str],
    reports: Sequence[Command] = (),
    send: Callable[[Sequence[Command]], list[Any]] | None = None,
) -> list[Any]:
    """Send ``commands`` with ``reports``, whose replies are ignored; return the replies.
    A script that a node has not cached is sent there once as EVAL, in a second round trip."""
    send = send or _send
    replies = send([*commands, *reports])[: len(commands)]
    unknown = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        again, loaded = [], set()
        for command in (commands[index] for index in unknown):
            script_on_node = (command[1], _name_node(command))
            new = script_on_node not in loaded
            verb = str(command[0]).replace("EVALSHA", "EVAL")
            again.append((verb, sources[str(command[1])], *command[2:]) if new else command)
            loaded.add(script_on_node)
        for index, reply in zip(unknown, send(again), strict=True):
            replies[index] = reply
    for reply in replies:
        for part in reply if isinstance(reply, list) else (reply,):
            if isinstance(part, Exception):  # a script for several targets returns one per target
                raise part
    return replies


def _send(commands: Sequence[Command]) -> list[Any]:
    """Send commands; return the replies in order, errors included."""
    if settings().redis_cluster:
        return cluster.send(client(), commands, _ROLES)
    return _send_to_master(commands)


def _send_to_master(commands: Sequence[Command]) -> list[Any]:
    """Send commands to a single Redis, with ``_READ_ROLE`` first when it is due."""
    if not _is_role_due(""):
        return _exchange(client(), commands)
    role, *replies = _exchange(client(), [_READ_ROLE, *commands])
    _observe_role("", role)
    return replies


def _execute(command: Command) -> Any:
    """Send one command to a single Redis; return its reply, or raise it if it is an error."""
    [reply] = _send_to_master([command])
    if isinstance(reply, Exception):
        raise reply
    return reply


def _evaluate(command: Command, script: Script) -> Any:
    """Send the EVALSHA of a script to a single Redis, as EVAL if it has not cached the script."""
    try:
        return _execute(command)
    except NoScriptError:
        return _execute(("EVAL", script.source, *command[2:]))


def _exchange(to: Any, commands: Sequence[Command]) -> list[Any]:
    """Send commands on the connection of the client ``to``; send them again once if it was lost.
    Return the replies in order, errors included.

    Commands are sent in packs, so that Redis runs the first while others are packed. To save CPU,
    arguments and replies are not checked one by one, as redis-py does, and replies are parsed
    without its checks of the connection.
    """
    connection, is_again = to.connection, False
    try:
        while True:
            try:
                connection.send_packed_command(_pack(commands))
                return _read_replies(connection, commands, to.response_callbacks)
            except RedisConnectionError:
                if is_again:
                    raise
                connection.disconnect()
                note_resend()
                is_again = True
    except BaseException:
        connection.disconnect()  # it may have replies that nothing has read
        raise


def _pack(commands: Sequence[Command]) -> Iterator[bytes]:
    for start in range(0, len(commands), _COMMANDS_PER_PACK):
        part = commands[start : start + _COMMANDS_PER_PACK]
        yield b"".join([pack_command(bind(command, "")) for command in part])  # type: ignore[arg-type]  # it declares one argument


def _read_replies(
    connection: Any, commands: Sequence[Command], callbacks: dict[Any, Any]
) -> list[Any]:
    parser = connection._parser
    parse = parser._reader.gets
    replies = []
    for command in commands:
        while (reply := parse()) is NOT_ENOUGH_DATA:
            _receive(connection, parser)
        if isinstance(reply, Exception):
            if isinstance(reply, RedisConnectionError):  # loading: redis-py raises it, too
                raise reply
        # The names of commands are upper case, as the keys are: no case has to be converted.
        elif convert := dict.get(callbacks, command[0]):
            reply = convert(reply)
        replies.append(reply)
    return replies


def _receive(connection: Any, parser: Any) -> None:
    """Receive a part of the replies. Raises errors of redis-py, as its ``read_response`` does."""
    try:
        parser.read_from_socket()
    except OSError as error:
        where = f"{connection.host}:{connection.port}"
        raise RedisConnectionError(f"Error while reading from {where} : {error.args}") from error


_ROLES = cluster.Roles(_READ_ROLE, _is_role_due, _observe_role)


def _name_node(command: Command) -> str:
    return cluster.name_node(client(), command) if settings().redis_cluster else ""
