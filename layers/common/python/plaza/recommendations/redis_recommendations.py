"""The recommended reviews of shops in Redis:

{<shard>}:shop:<id>:recommended          list    reviews, the best first; readers take it as it is
{<shard>}:shop:<id>:recommended:proxy    string  while it is there the list is fresh, or its
                                                 rebuild was asked for: the lock, and the mark of
                                                 freshness
{<shard>}:shop:<id>:recommended:rebuild  string  the rebuild that began last: only that one puts its
                                                 list in place
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.projections import key_of
from plaza.infra.redis import Call
from plaza.infra.settings import settings
from plaza.recommendations.recommendations import Recommended

ASKED_TTL_MS = 2_000
FRESH_TTL_MS = 3_600_000
REBUILD_TTL_MS = 900_000  # longer than a consumer may take

_LUA = Path(__file__).with_name("lua")
LOOK = load_script(_LUA / "look.lua")
SWAP = load_script(_LUA / "swap.lua")


class Look(NamedTuple):
    """What is recommended, and whether who looked is to ask for a rebuild."""

    review_ids: list[int]
    ask: bool


def keys_of(shop_id: int) -> tuple[str, str]:
    """The list of a shop, and its proxy."""
    key = key_of(f"shop:{shop_id}", "recommended")
    return key, f"{key}:proxy"


def rebuild_key(shop_id: int) -> str:
    """The key of the rebuild of a shop's list that began last."""
    return f"{keys_of(shop_id)[0]}:rebuild"


def look(shop_id: int) -> Look:
    """What is recommended of a shop. One round trip. Raises RedisDown."""
    ask, *ids = redis.run(LOOK, keys_of(shop_id), (ASKED_TTL_MS, secrets.token_hex(8)))
    return Look([int(review_id) for review_id in ids], ask == 1)


def begin_rebuilds(shop_ids: Iterable[int]) -> str:
    """Begin a rebuild of each list; call it before MySQL is read. Returns its name.

    One round trip. Raises RedisDown.
    """
    rebuild = secrets.token_hex(8)
    redis.pipeline(
        [("SET", rebuild_key(shop_id), rebuild, "PX", REBUILD_TTL_MS) for shop_id in shop_ids]
    )
    return rebuild


def swap_all(lists: Mapping[int, Recommended], rebuild: str) -> list[int]:
    """Put the lists of shops in place, unless another rebuild of theirs began since.

    Returns the shops whose lists were put in place. One round trip. Raises RedisDown.
    """
    idle_ms = settings().idle_ttl_s * 1000
    swapped = redis.run_all(
        [
            Call(
                SWAP,
                (*keys_of(shop_id), rebuild_key(shop_id)),
                (rebuild, _about(idle_ms), _about(FRESH_TTL_MS), *recommended.review_ids),
            )
            for shop_id, recommended in lists.items()
        ]
    )
    return [shop_id for shop_id, done in zip(lists, swapped, strict=True) if done == 1]


def _about(ttl_ms: int) -> int:
    """What was made together need not end together."""
    return int(ttl_ms * random.uniform(0.9, 1.1))
