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


class ReplyMeaning(Flag):
    """What an error of Redis means. An error that is not in ``MEANINGS`` is a bug of the caller."""

    BUG = 0
    OUTAGE = auto()  # out of reach, or unable to work
    DEMOTED = auto()  # a replica refused the command, which changed nothing
    STALE = auto()  # the client's master became a replica, or none of its nodes replies
    TOPOLOGY = auto()  # the slots of the cluster are read again
    RESENT = auto()  # the command is sent once more, to the slot's current node


MEANINGS: dict[type[Exception] | str, ReplyMeaning] = {
    RedisConnectionError: ReplyMeaning.OUTAGE | ReplyMeaning.TOPOLOGY | ReplyMeaning.RESENT,
    RedisTimeoutError: ReplyMeaning.OUTAGE | ReplyMeaning.TOPOLOGY,
    RedisClusterException: ReplyMeaning.OUTAGE | ReplyMeaning.STALE,  # no node returns the slots
    SlotNotCoveredError: ReplyMeaning.TOPOLOGY | ReplyMeaning.RESENT,
    ClusterError: ReplyMeaning.OUTAGE,
    ClusterDownError: ReplyMeaning.TOPOLOGY,  # CLUSTERDOWN, MASTERDOWN
    AskError: ReplyMeaning.OUTAGE,  # and MOVED: the slot was moving at both attempts
    MovedError: ReplyMeaning.TOPOLOGY | ReplyMeaning.RESENT,
    TryAgainError: ReplyMeaning.OUTAGE,  # keys of one slot are at two nodes
    BusyLoadingError: ReplyMeaning.OUTAGE,
    OutOfMemoryError: ReplyMeaning.OUTAGE,
    ReadOnlyError: ReplyMeaning.OUTAGE | ReplyMeaning.DEMOTED | ReplyMeaning.STALE,
    # Without a class in redis-py:
    "BUSY": ReplyMeaning.OUTAGE,  # a script runs for too long
    "MISCONF": ReplyMeaning.OUTAGE,  # the disk is not writable
    "NOREPLICAS": ReplyMeaning.OUTAGE,  # a master has too few
}
"""Class of redis-py or first word of a reply -> what it means, besides what its bases mean."""


def classes_of(meaning: ReplyMeaning) -> tuple[type[Exception], ...]:
    """Return the classes of redis-py that have a meaning."""
    return tuple(
        name for name, own in MEANINGS.items() if isinstance(name, type) and meaning in own
    )


_OUTAGES = classes_of(ReplyMeaning.OUTAGE)
_OUTAGE_WORDS = {name for name, own in MEANINGS.items() if ReplyMeaning.OUTAGE in own}


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
    return isinstance(error, classes_of(ReplyMeaning.DEMOTED))


def is_of_stale_client(error: BaseException) -> bool:
    """Return whether the client's master became a replica or none of its nodes replies."""
    return isinstance(error, classes_of(ReplyMeaning.STALE))


def describe(error: BaseException) -> str:
    """Return the type of an error, and why TLS failed."""
    return type(error).__name__ + tls.describe_failure(error)


def translate(error: Exception) -> Exception:
    """Return UnknownProtocol for that error of a script, else the error."""
    return UnknownProtocol(str(error)) if str(error).startswith("PROTOCOL ") else error
