"""How often something may happen: limits in Redis, which all processes share.

A rate is limited by a token bucket (``Bucket``), one number a caller. What is promised for any
hour (at most five codes to a phone) is limited by sliding windows (``admit``), an entry an attempt:
a bucket that gives five at once and five an hour would give ten in its first hour.

{<shard>}:limit:<action>:<subject>    zset    attempt -> when it was admitted, milliseconds since 1970
{<shard>}:bucket:<group>:<subject>  string  when the bucket is full again, microseconds; gone then
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
from plaza.infra.observability import error_fields, record
from plaza.infra.redis import Call, RedisDown
from plaza.infra.settings import settings
from plaza.infra.shards import shard_of

_ADMIT = load_script(Path(__file__).with_name("scripts") / "admit.lua")
_ACQUIRE = load_script(Path(__file__).with_name("scripts") / "acquire_token.lua")


@dataclass(frozen=True, slots=True)
class Window:
    """At most ``max_attempts`` in any ``duration_s`` seconds."""

    duration_s: int
    max_attempts: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """``subject`` tries ``action`` once. Both end up in a key: ``subject`` must give nobody away."""

    action: str
    subject: str
    attempt_id: str = field(default_factory=lambda: secrets.token_hex(8))


def admit(attempt: Attempt, windows: Sequence[Window]) -> int:
    """0: it may happen, and counts. Else how many milliseconds too early it is, and it doesn't.

    One round trip. Raises RedisDown.
    """
    pairs = [part for window in windows for part in (window.duration_s * 1000, window.max_attempts)]
    return int(redis.run(_ADMIT, (limit_key(attempt),), (attempt.attempt_id, *pairs)))


def withdraw(attempt: Attempt) -> None:
    """It was admitted and did not happen after all: it doesn't count. Raises RedisDown."""
    redis.execute("ZREM", limit_key(attempt), attempt.attempt_id)


def limit_key(attempt: Attempt) -> str:
    """Where the attempts of somebody at something are."""
    name = f"limit:{attempt.action}:{attempt.subject}"
    return f"{{{shard_of(name)}}}:{name}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """What ``subject`` may do of a ``group``: ``per_s`` on the long run, ``burst`` at once."""

    group: str
    subject: str
    per_s: float
    burst: int

    @property
    def key(self) -> str:
        """Where it is in Redis."""
        name = f"bucket:{self.group}:{self.subject}"
        return f"{{{shard_of(name)}}}:{name}"

    @property
    def acquire_call(self) -> Call:
        """The call that takes a token: 0, or in how many milliseconds there will be one."""
        return Call(_ACQUIRE, (self.key,), (self.per_s, self.burst))


def anonymous_bucket(address: str) -> Bucket:
    """What may be asked from an address by a caller without a session. Many may share one."""
    # Not to hide it, there are too few addresses for that: to have one length.
    subject = hashlib.blake2b(network_of(address).encode(), digest_size=12).hexdigest()
    config = settings()
    return Bucket("anonymous", subject, config.anonymous_per_s, config.anonymous_burst)


def acquire(bucket: Bucket) -> int:
    """0: there was a token, it is gone. Else in how many milliseconds there will be one.

    One round trip. Raises RedisDown.
    """
    return int(redis.run(*bucket.acquire_call))


def acquire_if_up(bucket: Bucket) -> int:
    """As ``acquire``; 0, and recorded, while Redis is unavailable."""
    try:
        return acquire(bucket)
    except RedisDown as error:
        record_limit_skipped(error)
        return 0


def acquire_for_address(address: str) -> int:
    """Take a token of the network of ``address``, as ``acquire_if_up`` does. One round trip."""
    return acquire_if_up(anonymous_bucket(address))


def record_limit_skipped(error: RedisDown) -> None:
    """Record that a caller could not be limited."""
    record("rate_limit_skipped", {"rate_limits_skipped": 1}, **error_fields(error))
