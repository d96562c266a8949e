"""Challenges of passkeys in Redis.

auth{<shard>}:passkey-challenge:<SHA-256, hex>      string  1
auth{<shard>}:passkey-challenge-use:<SHA-256, hex>  string  the request that used it
"""

from __future__ import annotations

import hashlib
import secrets

from plaza.infra.redis import redis
from plaza.infra.redis.shards import shard_of
from plaza.people.auth.passkeys import CHALLENGE_TTL_S


def passkey_challenge_key(challenge: str) -> str:
    """Return the key of a challenge."""
    name = f"passkey-challenge:{_hash(challenge)}"
    return f"auth{{{shard_of(name)}}}:{name}"


def passkey_challenge_use_key(challenge: str) -> str:
    """Return the key of the use of a challenge."""
    name = f"passkey-challenge-use:{_hash(challenge)}"
    return f"auth{{{shard_of(name)}}}:{name}"


def store(challenge: str) -> None:
    """Store a challenge for 5 minutes. One round trip. Raises RedisDown."""
    redis.execute("SET", passkey_challenge_key(challenge), 1, "EX", CHALLENGE_TTL_S)


def use(challenge: str) -> bool:
    """Use up a challenge; return False if it is unknown, used or over. Two round trips, three for a
    used one. Raises RedisDown."""
    if not redis.execute("EXISTS", passkey_challenge_key(challenge)):
        return False
    key, request = passkey_challenge_use_key(challenge), secrets.token_hex(8)
    if redis.execute("SET", key, request, "NX", "EX", CHALLENGE_TTL_S):
        return True
    return bool(redis.execute("GET", key) == request)  # the command was sent again


def release(challenge: str) -> None:
    """Let a challenge be used again, because the request failed. One round trip. Raises
    RedisDown."""
    redis.execute("UNLINK", passkey_challenge_use_key(challenge))


def _hash(challenge: str) -> str:
    return hashlib.sha256(challenge.encode()).hexdigest()
