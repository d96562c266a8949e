"""How often something may happen: limits in Redis, which all processes share.

A rate is limited by a token bucket (``Bucket``), one number a caller. What is promised for any
hour (at most five codes to a phone) is limited by sliding windows (``admit``), an entry an attempt:
a bucket that gives five at once and five an hour would give ten in its first hour.

{<shard>}:limit:<what>:<who>    zset    attempt -> when it was admitted, milliseconds since 1970
{<shard>}:bucket:<group>:<who>  string  when the bucket is full again, microseconds; gone then
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.networks import network_of
from plaza.infra.observability import cause, record
from plaza.infra.redis import Call, RedisDown
from plaza.infra.settings import settings
from plaza.infra.shards import shard_of

_ADMIT = load_script(Path(__file__).with_name("scripts") / "admit.lua")
_TAKE = load_script(Path(__file__).with_name("scripts") / "take.lua")


@dataclass(frozen=True, slots=True)
class Window:
    """At most ``most`` in any ``length_s`` seconds."""

    length_s: int
    most: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """``who`` tries ``what`` once. Both end up in a key: ``who`` must give nobody away."""

    what: str
    who: str
    name: str = field(default_factory=lambda: secrets.token_hex(8))


def admit(attempt: Attempt, windows: Sequence[Window]) -> int:
    """0: it may happen, and counts. Else how many milliseconds too early it is, and it doesn't.

    One round trip. Raises RedisDown.
    """
    pairs = [part for window in windows for part in (window.length_s * 1000, window.most)]
    return int(redis.run(_ADMIT, (limit_key(attempt),), (attempt.name, *pairs)))


def take_back(attempt: Attempt) -> None:
    """It was admitted and did not happen after all: it doesn't count. Raises RedisDown."""
    redis.execute("ZREM", limit_key(attempt), attempt.name)


def limit_key(attempt: Attempt) -> str:
    """Where the attempts of somebody at something are."""
    name = f"limit:{attempt.what}:{attempt.who}"
    return f"{{{shard_of(name)}}}:{name}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """What ``who`` may do of a ``group``: ``per_s`` on the long run, ``burst`` at once."""

    group: str
    who: str
    per_s: float
    burst: int

    @property
    def key(self) -> str:
        """Where it is in Redis."""
        name = f"bucket:{self.group}:{self.who}"
        return f"{{{shard_of(name)}}}:{name}"

    @property
    def taking(self) -> Call:
        """The call that takes a token: 0, or in how many milliseconds there will be one."""
        return Call(_TAKE, (self.key,), (self.per_s, self.burst))


def bucket_of_address(address: str) -> Bucket:
    """What may be asked from an address by who has no session. Many may share one."""
    # Not to hide it, there are too few addresses for that: to have one length.
    who = hashlib.blake2b(network_of(address).encode(), digest_size=12).hexdigest()
    said = settings()
    return Bucket("anonymous", who, said.anonymous_per_s, said.anonymous_burst)


def take(bucket: Bucket) -> int:
    """0: there was a token, it is gone. Else in how many milliseconds there will be one.

    One round trip. Raises RedisDown.
    """
    return int(redis.run(*bucket.taking))


def take_if_up(bucket: Bucket) -> int:
    """As ``take``; 0, and recorded, while Redis is unavailable."""
    try:
        return take(bucket)
    except RedisDown as error:
        record_unchecked(error)
        return 0


def take_of_address(address: str) -> int:
    """Take a token of the network of ``address``, as ``take_if_up`` does. One round trip."""
    return take_if_up(bucket_of_address(address))


def record_unchecked(error: RedisDown) -> None:
    """Record that a caller could not be limited."""
    record("limit_unchecked", {"limits_unchecked": 1}, **cause(error))
