"""Codes in Redis, as the seal that only we can make, in the shard of the phone's seal:

{<shard>}:code:<seal of the phone>  hash  mac, the seal of the code; wrong, the wrong tries so far
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from plaza.auth.codes import CODE_TTL_S, MOST_WRONG
from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.shards import shard_of

_LUA = Path(__file__).with_name("lua")
_KEEP = load_script(_LUA / "keep_code.lua")
_CHECK = load_script(_LUA / "check_code.lua")


class Used(NamedTuple):
    """A code that was right and is used up: how long it had left, and the wrong tries before."""

    left_ms: int
    wrong: int


def code_key(who: str) -> str:
    """Where the code is that was sent to ``who``, the seal of a phone."""
    name = f"code:{who}"
    return f"{{{shard_of(name)}}}:{name}"


def keep(who: str, mac: str) -> None:
    """From now on this is the code of ``who``, for five minutes. Raises RedisDown."""
    redis.run(_KEEP, (code_key(who),), (mac, 0, CODE_TTL_S * 1000, 1))


def check(who: str, mac: str) -> Used | None:
    """Use the code of ``who`` up if it is this one; None when it isn't. Raises RedisDown."""
    code, *rest = redis.run(_CHECK, (code_key(who),), (mac, MOST_WRONG))
    return Used(*rest) if code == "RIGHT" else None


def put_back(who: str, mac: str, used: Used) -> None:
    """The code was used up in vain: it works again, unless a newer was sent. Raises RedisDown."""
    redis.run(_KEEP, (code_key(who),), (mac, used.wrong, max(1, used.left_ms), 0))
