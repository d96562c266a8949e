"""Connections to Redis: one per process, with short timeouts, a login from Secrets Manager, TLS
with one context, and a circuit breaker.

Other modules call ``connections.client()`` by the module: tests replace it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import redis
from hiredis import pack_command
from redis import Connection as _Connection
from redis._parsers.hiredis import NOT_ENOUGH_DATA
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisClusterException, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError

from plaza.infra.aws import secrets, tls
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.redis import cluster, errors, terms
from plaza.infra.redis.cluster import RANDOM_REPLICA, connect_cluster
from plaza.infra.redis.commands import Command, bind
from plaza.infra.redis.resends import CountingRetry, note_resend
from plaza.infra.runtime.dependencies import Dependency, RetryRule
from plaza.infra.runtime.process import Lazy
from plaza.infra.runtime.settings import settings

if TYPE_CHECKING:
    from ssl import SSLSocket

_COMMANDS_PER_PACK = 128


class LoginConnection(_Connection):
    """A connection that logs in with the secret ``redis_secret_id``, if there is one. A refused
    login reads the secret again, because it may be rotated."""

    def connect_check_health(self, *args: Any, **options: Any) -> None:
        """Connect and log in, if that is not done."""
        secret_id = settings().redis_secret_id
        if secret_id is None or self.is_connected:
            super().connect_check_health(*args, **options)
            return
        try:
            self._log_in(secret_id, *args, **options)
        except AuthenticationError:
            if not secrets.refresh(secret_id):
                raise
            self._log_in(secret_id, *args, **options)

    def _log_in(self, secret_id: str, *args: Any, **options: Any) -> None:
        try:
            self.username, self.password = secrets.read_login(secret_id)
        except SecretsDown as error:
            raise RedisConnectionError(f"Error connecting to Redis: {error}") from error
        super().connect_check_health(*args, **options)


class TlsConnection(LoginConnection):
    """A connection over TLS that verifies the certificate and the host name.

    redis-py's own class creates a context for each connection.
    """

    def _connect(self) -> SSLSocket:
        connected = super()._connect()  # type: ignore[no-untyped-call]
        try:
            context = tls.verifying_context(settings().redis_ca)
            return context.wrap_socket(connected, server_hostname=self.host)
        except BaseException:
            connected.close()
            raise


def connection_options(url: str) -> tuple[str, dict[str, Any]]:
    """Return ``url`` without TLS, and the options of redis-py that make it use these classes."""
    if url.startswith("rediss://"):
        return "redis" + url.removeprefix("rediss"), {"connection_class": TlsConnection}
    return url, {"connection_class": LoginConnection}


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


def client() -> Any:
    """Return the redis-py client of this process, single node or cluster."""
    return _client.get()


def reader() -> Any:
    """Return the client of this process for replicas."""
    return _reader.get()


def forget_reader() -> None:
    """Close the connection to replicas; the next read opens a new one."""
    _reader.reset()


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
    if to_replicas:  # they have no term, and another clock than the node that decides
        if cluster:
            return connect_cluster(url, load_balancing_strategy=RANDOM_REPLICA, **options)
    elif cluster:
        return connect_cluster(url, redis_connect_func=terms.read_node_info, **options)
    else:
        options["redis_connect_func"] = _on_connect
    retry = CountingRetry(NoBackoff(), 1, supported_errors=(RedisConnectionError,))
    return redis.Redis.from_url(url, retry=retry, single_connection_client=True, **options)


def forget_client() -> None:
    """Close the connection; the next call opens a new one."""
    _client.reset()
    terms.known_nodes.clear()


def _on_connect(connection: Any) -> None:
    connection.on_connect()
    terms.read_node_info(connection)


def _close_stale_client(error: BaseException) -> None:
    """Close the client after an error of a stale one; the next one reads the topology from the
    nodes of the URL."""
    if errors.is_of_stale_client(error):
        forget_client()


REDIS = Dependency(
    name="Redis",
    down=errors.RedisDown,
    errors=lambda: (RedisError, RedisClusterException),
    is_outage=errors.is_outage,
    is_unsent=errors.is_unsent,
    describe=errors.describe,
    translate=errors.translate,
    clean_up=_close_stale_client,
    # After a failover an old connection leads to a replica, a new one to the master.
    retries=(RetryRule(errors.is_read_only),),
)


def name_node(command: Command) -> str:
    """Return the name of the node that serves ``command``, "" for a single Redis."""
    return cluster.name_node(client(), command) if settings().redis_cluster else ""


def exchange(to: Any, commands: Sequence[Command]) -> list[Any]:
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
