"""Used ID tokens in Redis.

auth{<shard>}:id-token:<SHA-256, hex>  string  the sign-in that used it
"""

from __future__ import annotations

import secrets

from plaza.infra.redis import redis
from plaza.infra.redis.shards import shard_of


def id_token_key(name: str) -> str:
    """Return the key of a token, by its ``IdToken.name``."""
    key = f"id-token:{name}"
    return f"auth{{{shard_of(key)}}}:{key}"


def use(name: str, ttl_s: int) -> bool:
    """Use up a token, which is remembered for ``ttl_s``; return False if it was used. One round
    trip, two for a used token. Raises RedisDown."""
    key, sign_in = id_token_key(name), secrets.token_hex(8)
    if redis.execute("SET", key, sign_in, "NX", "EX", ttl_s):
        return True
    return bool(redis.execute("GET", key) == sign_in)  # the command was sent again


def release(name: str) -> None:
    """Let a token be used again, because the sign-in failed. One round trip. Raises RedisDown."""
    redis.execute("UNLINK", id_token_key(name))
