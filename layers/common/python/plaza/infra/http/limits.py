"""Rate limits in Redis, shared by all processes.

A token bucket (``Bucket``) limits a rate with one number per caller. Sliding windows (``admit``)
limit what is guaranteed for any hour (at most five codes to a phone), with an entry per attempt: a
bucket of five tokens and five an hour would admit ten in its first hour.

{<shard>}:limit:<action>:<subject>  zset    attempt -> when admitted, milliseconds since 1970
{<shard>}:bucket:<group>:<subject>  string  when the bucket is full, microseconds since 1970; the
                                            key expires then
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from plaza.infra.http.networks import network_of
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.scripts import SHARED, load_script
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.settings import settings

POLLS_PER_S, POLLS_BURST = 1_000, 5_000  # of one network

_ADMIT = load_script(SHARED / "admit.lua")
_ACQUIRE = load_script(SHARED / "acquire_token.lua")


@dataclass(frozen=True, slots=True)
class Window:
    """At most ``max_attempts`` in any ``duration_s`` seconds."""

    duration_s: int
    max_attempts: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of ``subject`` at ``action``. Both are part of a key, so ``subject`` must not
    identify a person."""

    action: str
    subject: str
    attempt_id: str = field(default_factory=lambda: secrets.token_hex(8))


def admit(attempt: Attempt, windows: Sequence[Window]) -> int:
    """Count an attempt and return 0 if all windows admit it, else return the wait in milliseconds.
    One round trip. Raises RedisDown."""
    pairs = [part for window in windows for part in (window.duration_s * 1000, window.max_attempts)]
    return int(redis.run(_ADMIT, (limit_key(attempt),), (attempt.attempt_id, *pairs)))


def withdraw(attempt: Attempt) -> None:
    """Remove an admitted attempt that was not carried out. One round trip. Raises RedisDown."""
    redis.execute("ZREM", limit_key(attempt), attempt.attempt_id)


def limit_key(attempt: Attempt) -> str:
    """Return the key of the subject's attempts at the action."""
    name = f"limit:{attempt.action}:{attempt.subject}"
    return f"{{{shard_of(name)}}}:{name}"


class Quota(NamedTuple):
    """The requests that a rate limit admits.

    ``remaining`` at once, and ``burst`` again in ``full_in_s`` without requests; ``window_s`` after
    all of them.
    """

    remaining: int
    full_in_s: int
    burst: int
    window_s: int


class Bucket(NamedTuple):
    """The token bucket of ``subject`` in ``group``: ``per_s`` tokens a second, up to ``burst``."""

    group: str
    subject: str
    per_s: float
    burst: int

    @property
    def key(self) -> str:
        """The key in Redis."""
        name = f"bucket:{self.group}:{self.subject}"
        return f"{{{shard_of(name)}}}:{name}"

    def scaled(self, factor: float) -> Bucket:
        """Return the bucket with ``factor`` times its rate and burst; 1 is the least burst."""
        if factor == 1:
            return self
        burst = max(1, round(self.burst * factor))
        return Bucket(self.group, self.subject, self.per_s * factor, burst)

    @property
    def acquire_call(self) -> Call:
        """The call that takes a token, if there is one: ``read_reply`` reads its reply."""
        return Call(_ACQUIRE, (self.key,), (self.per_s, self.burst))

    def charge(self, tokens: int) -> tuple[int, Quota | None]:
        """Take tokens, at most a full bucket, if there are as many; return what ``read_reply``
        returns, no wait while Redis is unavailable. One round trip."""
        args = (self.per_s, self.burst, min(tokens, self.burst))
        try:
            return self.read_reply(redis.run(_ACQUIRE, (self.key,), args))
        except RedisDown as error:
            record_limit_skipped(error)
            return 0, None

    def read_reply(self, reply: int) -> tuple[int, Quota]:
        """Return the milliseconds until there is a token, 0 if one was taken; and what is left."""
        us_per_token = math.ceil(1_000_000 / self.per_s)
        wait_us = max(0, reply)
        full_in_us = wait_us + (self.burst - 1) * us_per_token if wait_us else -reply
        remaining = 0 if wait_us else max(0, self.burst + reply // us_per_token)
        window_s = math.ceil(self.burst * us_per_token / 1e6)
        quota = Quota(remaining, math.ceil(full_in_us / 1e6), self.burst, window_s)
        return math.ceil(wait_us / 1000), quota


def anonymous_bucket(address: str) -> Bucket:
    """Return the bucket of anonymous callers for the network of ``address``."""
    config, subject = settings(), _name_network(address)
    bucket = Bucket("anonymous", subject, config.anonymous_per_s, config.anonymous_burst)
    return bucket.scaled(switch_state.current().anonymous_factor)


def polls_bucket(address: str) -> Bucket:
    """Return the bucket of polls for the network of ``address``. An office or a carrier may be one
    network, so it is large; operators slow clients down by ``live_poll_s`` instead."""
    return Bucket("polls", _name_network(address), POLLS_PER_S, POLLS_BURST)


def _name_network(address: str) -> str:
    # Hashed for a fixed length, not for secrecy: there are too few addresses for that.
    return hashlib.blake2b(network_of(address).encode(), digest_size=12).hexdigest()


def acquire(bucket: Bucket) -> int:
    """Take a token and return 0, or return the milliseconds until there is one.
    One round trip. Raises RedisDown."""
    return bucket.read_reply(redis.run(*bucket.acquire_call))[0]


def record_limit_skipped(error: RedisDown) -> None:
    """Record that Redis was unavailable to a rate limit."""
    record("rate_limit_skipped", {"rate_limits_skipped": 1}, **error_fields(error))
