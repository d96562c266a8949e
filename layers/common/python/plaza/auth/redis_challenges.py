"""Challenges in Redis: who asked for a code holds one, and only they can try its code.

{<shard>}:challenge:<SHA-256 of it, hex>  hash    mac of the code; phone, encrypted;
                                                  wrong_tries; used_by_try; last_wrong_try
{<shard>}:sign-in:<keyed hash>                  string  this phone signed in from this network
"""

from __future__ import annotations

import secrets
from pathlib import Path

from plaza.auth.codes import CODE_TTL_S, MAX_WRONG_TRIES
from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.shards import shard_of

SIGN_IN_TTL_S = 90 * 86_400
_LUA = Path(__file__).with_name("lua")
_STORE = load_script(_LUA / "store_challenge.lua")
_CHECK = load_script(_LUA / "check_challenge.lua")


def challenge_key(challenge_sha256: str) -> str:
    """Where a challenge is."""
    name = f"challenge:{challenge_sha256}"
    return f"{{{shard_of(name)}}}:{name}"


def sign_in_key(phone_at_network: str) -> str:
    """Where it stands that a phone signed in from a network, given the seal of both."""
    name = f"sign-in:{phone_at_network}"
    return f"{{{shard_of(name)}}}:{name}"


def store(challenge_sha256: str, mac: str, encrypted_phone: str) -> None:
    """Keep a challenge for five minutes. Raises RedisDown."""
    args = (mac, encrypted_phone, CODE_TTL_S * 1000)
    redis.run(_STORE, (challenge_key(challenge_sha256),), args)


def check(challenge_sha256: str, mac: str) -> str | None:
    """The encrypted phone of a challenge if this is its code, which is used up then; else None.

    Raises RedisDown.
    """
    # The try has a name, so that one that the client of Redis sends again has the same outcome.
    args = (mac, MAX_WRONG_TRIES, secrets.token_hex(8))
    outcome, *phone = redis.run(_CHECK, (challenge_key(challenge_sha256),), args)
    return str(phone[0]) if outcome == "RIGHT" else None


def release(challenge_sha256: str) -> None:
    """The code was used up in vain: let it work again. Raises RedisDown."""
    redis.execute("HDEL", challenge_key(challenge_sha256), "used_by_try")


def mark_sign_in(phone_at_network: str) -> None:
    """Remember that a phone signed in from a network. Raises RedisDown."""
    redis.execute("SET", sign_in_key(phone_at_network), 1, "EX", SIGN_IN_TTL_S)


def has_signed_in(phone_at_network: str) -> bool:
    """True when a phone signed in from a network within 90 days. Raises RedisDown."""
    return bool(redis.execute("EXISTS", sign_in_key(phone_at_network)))
