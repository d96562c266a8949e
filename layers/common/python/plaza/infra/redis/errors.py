"""What an error of Redis means: an outage, a command that was not sent, an older protocol."""

from __future__ import annotations

from enum import Flag, auto

from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    MovedError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    SlotNotCoveredError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from plaza.infra.aws import tls
from plaza.infra.runtime.dependencies import DependencyDown
from plaza.infra.runtime.errors import UnknownProtocol


class RedisDown(DependencyDown):
    """Redis is unreachable or cannot do its work: loading, out of memory, failing over."""


class Meaning(Flag):
    """What an error of Redis means. An error that is not in ``MEANINGS`` is a bug of the caller."""

    BUG = 0
    OUTAGE = auto()  # out of reach, or unable to work
    DEMOTED = auto()  # a replica refused the command, which changed nothing
    STALE = auto()  # the client's master became a replica, or none of its nodes replies
    TOPOLOGY = auto()  # the slots of the cluster are read again
    RESENT = auto()  # the command is sent once more, to the slot's current node


MEANINGS: dict[type[Exception] | str, Meaning] = {
    RedisConnectionError: Meaning.OUTAGE | Meaning.TOPOLOGY | Meaning.RESENT,
    RedisTimeoutError: Meaning.OUTAGE | Meaning.TOPOLOGY,
    RedisClusterException: Meaning.OUTAGE | Meaning.STALE,  # no node returns the slots
    SlotNotCoveredError: Meaning.TOPOLOGY | Meaning.RESENT,
    ClusterError: Meaning.OUTAGE,
    ClusterDownError: Meaning.TOPOLOGY,  # CLUSTERDOWN, MASTERDOWN
    AskError: Meaning.OUTAGE,  # and MOVED: the slot was moving at both attempts
    MovedError: Meaning.TOPOLOGY | Meaning.RESENT,
    TryAgainError: Meaning.OUTAGE,  # keys of one slot are at two nodes
    BusyLoadingError: Meaning.OUTAGE,
    OutOfMemoryError: Meaning.OUTAGE,
    ReadOnlyError: Meaning.OUTAGE | Meaning.DEMOTED | Meaning.STALE,
    # Without a class in redis-py:
    "BUSY": Meaning.OUTAGE,  # a script runs for too long
    "MISCONF": Meaning.OUTAGE,  # the disk is not writable
    "NOREPLICAS": Meaning.OUTAGE,  # a master has too few
}
"""Class of redis-py or first word of a reply -> what it means, besides what its bases mean."""


def classes_of(meaning: Meaning) -> tuple[type[Exception], ...]:
    """Return the classes of redis-py that have a meaning."""
    return tuple(
        name for name, own in MEANINGS.items() if isinstance(name, type) and meaning in own
    )


_OUTAGES = classes_of(Meaning.OUTAGE)
_OUTAGE_WORDS = {name for name, own in MEANINGS.items() if Meaning.OUTAGE in own}


def is_outage(error: BaseException) -> bool:
    """Return whether Redis failed; any other error is a reply of a working server."""
    return isinstance(error, _OUTAGES) or str(error).partition(" ")[0] in _OUTAGE_WORDS


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
    return isinstance(error, classes_of(Meaning.DEMOTED))


def is_of_stale_client(error: BaseException) -> bool:
    """Return whether the client's master became a replica or none of its nodes replies."""
    return isinstance(error, classes_of(Meaning.STALE))


def describe(error: BaseException) -> str:
    """Return the type of an error, and why TLS failed."""
    return type(error).__name__ + tls.describe_failure(error)


def translate(error: Exception) -> Exception:
    """Return UnknownProtocol for that error of a script, else the error."""
    return UnknownProtocol(str(error)) if str(error).startswith("PROTOCOL ") else error
