"""Challenges and recent sign-ins in Redis. Each call is one round trip.

auth{<shard>}:challenge:<SHA-256, hex>  hash    mac: keyed hash of the code; phone, encrypted;
                                            wrong_tries; used_by_try; last_wrong_try
auth{<shard>}:sign-in:<keyed hash>      string  this phone signed in from this network
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import NamedTuple

from plaza.infra.redis import redis
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import shard_of
from plaza.people.auth.codes import CODE_TTL_S, MAX_WRONG_TRIES

SIGN_IN_TTL_S = 90 * 86_400
_LUA = Path(__file__).with_name("lua")
_STORE = load_script(_LUA / "store_challenge.lua")
_CHECK = load_script(_LUA / "check_challenge.lua")


def challenge_key(challenge_sha256: str) -> str:
    name = f"challenge:{challenge_sha256}"
    return f"auth{{{shard_of(name)}}}:{name}"


def sign_in_key(phone_at_network: str) -> str:
    """Return the key of a sign-in, by the keyed hash of phone and network."""
    name = f"sign-in:{phone_at_network}"
    return f"auth{{{shard_of(name)}}}:{name}"


def store(challenge_sha256: str, mac: str, encrypted_phone: str) -> None:
    """Store a challenge for 5 minutes. Raises RedisDown."""
    args = (mac, encrypted_phone, CODE_TTL_S * 1000)
    redis.run(_STORE, (challenge_key(challenge_sha256),), args)


class CheckedCode(NamedTuple):
    """Whether a code was right, and the encrypted phone; None without the challenge."""

    is_right: bool
    encrypted_phone: str | None


def check(challenge_sha256: str, mac: str) -> CheckedCode:
    """Use up a code, or count a wrong try. Raises RedisDown."""
    # The random name of the try makes a resent command repeat its outcome.
    args = (mac, MAX_WRONG_TRIES, secrets.token_hex(8))
    outcome, *phone = redis.run(_CHECK, (challenge_key(challenge_sha256),), args)
    return CheckedCode(outcome == "RIGHT", str(phone[0]) if phone else None)


def release(challenge_sha256: str) -> None:
    """Make a used code valid again, because the sign-in failed. Raises RedisDown."""
    redis.execute("HDEL", challenge_key(challenge_sha256), "used_by_try")


def mark_sign_in(phone_at_network: str) -> None:
    """Store for 90 days that a phone signed in from a network. Raises RedisDown."""
    redis.execute("SET", sign_in_key(phone_at_network), 1, "EX", SIGN_IN_TTL_S)


def has_signed_in(phone_at_network: str) -> bool:
    """Return whether a phone signed in from a network within 90 days. Raises RedisDown."""
    return bool(redis.execute("EXISTS", sign_in_key(phone_at_network)))
