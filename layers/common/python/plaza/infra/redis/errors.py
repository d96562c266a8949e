"""What an error of Redis means: an outage, a command that was not sent, an older protocol."""

from __future__ import annotations

from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from plaza.infra.aws import tls
from plaza.infra.runtime.dependencies import DependencyDown
from plaza.infra.runtime.errors import UnknownProtocol


class RedisDown(DependencyDown):
    """Redis is unreachable or cannot do its work: loading, out of memory, failing over."""


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


def is_outage(error: BaseException) -> bool:
    """Return whether Redis failed; any other error is a reply of a working server."""
    return isinstance(error, _OUTAGES) or str(error).partition(" ")[0] in _OUTAGE_PREFIXES


def is_unsent(error: BaseException) -> bool:
    """Return whether the connection could not be opened, so that no command was sent."""
    text = str(error)
    return isinstance(error, AuthenticationError) or (
        isinstance(error, RedisConnectionError | RedisTimeoutError)
        and " connecting to " in text
        and text.startswith(("Error", "Timeout"))
    )


def is_read_only(error: BaseException) -> bool:
    """Return whether a replica refused the command, which then changed nothing."""
    return isinstance(error, ReadOnlyError)


def is_of_stale_client(error: BaseException) -> bool:
    """Return whether the client's master became a replica or none of its nodes replies."""
    return isinstance(error, ReadOnlyError | RedisClusterException)


def describe(error: BaseException) -> str:
    """Return the type of an error, and why TLS failed."""
    return type(error).__name__ + tls.describe_failure(error)


def translate(error: Exception) -> Exception:
    """Return UnknownProtocol for that error of a script, else the error."""
    return UnknownProtocol(str(error)) if str(error).startswith("PROTOCOL ") else error
