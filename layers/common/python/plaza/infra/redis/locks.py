"""Locks that expire, and claims of several keys at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call, Command
from plaza.infra.redis.scripts import SHARED, load_script

_RELEASE_LOCK = load_script(SHARED / "release_lock.lua")


class Lock(NamedTuple):
    """A lock and the token of its owner."""

    key: str
    token: str


def claim_all(keys: Sequence[str], ttl_s: float) -> list[str | None]:
    """Claim each key for ``ttl_s``; return the caller's token, None for a key claimed by another.

    The owner is read with GET: the reply of SET NX is a refusal if the command was sent twice
    because the first reply was lost. One round trip. Raises RedisDown.
    """
    token = secrets.token_hex(8)
    ttl_ms = int(ttl_s * 1000)
    commands: list[Command] = []
    for key in keys:
        commands += [("SET", key, token, "NX", "PX", ttl_ms), ("GET", key)]
    owners = redis.pipeline(commands)[1::2]
    return [token if owner == token else None for owner in owners]


def try_lock(key: str, ttl_s: float) -> Lock | None:
    """Lock ``key`` for ``ttl_s``; return None if another caller has the lock.
    One round trip. Raises RedisDown."""
    [token] = claim_all([key], ttl_s)
    return Lock(key, token) if token else None


def unlock(lock: Lock) -> bool:
    """Release the lock; return False if it had expired. One round trip. Raises RedisDown."""
    return unlock_all([lock])[0]


def unlock_all(held: Iterable[Lock]) -> list[bool]:
    """Release locks as ``unlock``, all in one round trip."""
    calls = [Call(_RELEASE_LOCK, (lock.key,), (lock.token,)) for lock in held]
    return [bool(released) for released in redis.run_all(calls)]
