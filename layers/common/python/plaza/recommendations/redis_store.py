"""The recommended reviews of shops in Redis:

{<shard>}:shop:<id>:recommended          list    reviews, the best first; readers take it as it is
{<shard>}:shop:<id>:recommended:fresh    string  while it is there the list is fresh, or its
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
from plaza.recommendations.model import ReviewList

REBUILD_REQUEST_TTL_MS = 2_000
FRESH_TTL_MS = 3_600_000
REBUILD_TTL_MS = 900_000  # longer than a consumer may take

_LUA = Path(__file__).with_name("lua")
READ_LIST = load_script(_LUA / "read_list.lua")
REPLACE_LIST = load_script(_LUA / "replace_list.lua")


class CachedList(NamedTuple):
    """What is recommended, and whether who looked is to ask for a rebuild."""

    review_ids: list[int]
    needs_rebuild: bool


def keys_of(shop_id: int) -> tuple[str, str]:
    """The list of a shop, and the key that marks it as fresh."""
    key = key_of(f"shop:{shop_id}", "recommended")
    return key, f"{key}:fresh"


def rebuild_key(shop_id: int) -> str:
    """The key of the rebuild of a shop's list that began last."""
    return f"{keys_of(shop_id)[0]}:rebuild"


def read_list(shop_id: int) -> CachedList:
    """What is recommended of a shop. One round trip. Raises RedisDown."""
    must_request, *ids = redis.run(
        READ_LIST, keys_of(shop_id), (REBUILD_REQUEST_TTL_MS, secrets.token_hex(8))
    )
    return CachedList([int(review_id) for review_id in ids], must_request == 1)


def begin_rebuilds(shop_ids: Iterable[int]) -> str:
    """Begin a rebuild of each list; call it before MySQL is read. Returns its name.

    One round trip. Raises RedisDown.
    """
    rebuild = secrets.token_hex(8)
    redis.pipeline(
        [("SET", rebuild_key(shop_id), rebuild, "PX", REBUILD_TTL_MS) for shop_id in shop_ids]
    )
    return rebuild


def replace_lists(lists: Mapping[int, ReviewList], rebuild: str) -> list[int]:
    """Put the lists of shops in place, unless another rebuild of theirs began since.

    Returns the shops whose lists were put in place. One round trip. Raises RedisDown.
    """
    idle_ms = settings().idle_ttl_s * 1000
    swapped = redis.run_all(
        [
            Call(
                REPLACE_LIST,
                (*keys_of(shop_id), rebuild_key(shop_id)),
                (rebuild, _add_jitter(idle_ms), _add_jitter(FRESH_TTL_MS), *review_list.review_ids),
            )
            for shop_id, review_list in lists.items()
        ]
    )
    return [shop_id for shop_id, done in zip(lists, swapped, strict=True) if done == 1]


def _add_jitter(ttl_ms: int) -> int:
    """What was made together need not end together."""
    return int(ttl_ms * random.uniform(0.9, 1.1))
