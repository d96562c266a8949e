"""The recommended reviews of shops in Redis:

{<shard>}:shop:<id>:best_reviews          hash    number of a list -> its reviews, the best first;
                                                  latest -> number of the latest list
{<shard>}:shop:<id>:best_reviews:fresh    string  while it exists, the list is fresh or its rebuild
                                                  is requested
{<shard>}:shop:<id>:best_reviews:rebuild  string  the rebuild that began last, the only one that may
                                                  replace the list
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script
from plaza.infra.runtime.settings import settings
from plaza.social.recommendations.model import ReviewList

REBUILD_REQUEST_TTL_MS = 2_000
FRESH_TTL_MS = 3_600_000
REBUILD_TTL_MS = 900_000  # longer than the timeout of a consumer
MAX_LISTS = 4  # of one shop: the latest, and those whose later pages clients may still read

_LUA = Path(__file__).with_name("lua")
READ_LIST = load_script(_LUA / "read_list.lua")
REPLACE_LIST = load_script(_LUA / "replace_list.lua")


class CachedList(NamedTuple):
    """The recommended reviews, the number of their list (0: none is stored), and whether the reader
    must request a rebuild."""

    review_ids: list[int]
    number: int
    needs_rebuild: bool


def keys_of(shop_id: int) -> tuple[str, str]:
    key = key_of(f"shop:{shop_id}", "best_reviews")
    return key, f"{key}:fresh"


def rebuild_key(shop_id: int) -> str:
    return f"{keys_of(shop_id)[0]}:rebuild"


def read_list(shop_id: int, number: int = 0) -> CachedList:
    """Return the list of a shop: ``number`` if it is still stored, else the latest. One
    round trip. Raises RedisDown."""
    must_request, number_text, ids = redis.run(
        READ_LIST, keys_of(shop_id), (REBUILD_REQUEST_TTL_MS, secrets.token_hex(8), number)
    )
    review_ids = [int(review_id) for review_id in ids.split(",") if review_id]
    return CachedList(review_ids, int(number_text), must_request == 1)


def begin_rebuilds(shop_ids: Iterable[int]) -> str:
    """Begin a rebuild of each list, before MySQL is read; return its name. One round trip. Raises
    RedisDown."""
    rebuild = secrets.token_hex(8)
    redis.pipeline(
        [("SET", rebuild_key(shop_id), rebuild, "PX", REBUILD_TTL_MS) for shop_id in shop_ids]
    )
    return rebuild


def replace_lists(lists: Mapping[int, ReviewList], rebuild: str) -> list[int]:
    """Replace the lists of shops, unless another rebuild of a list began since. Return the shops
    whose lists were replaced. One round trip. Raises RedisDown."""
    idle_ms = settings().idle_ttl_s * 1000
    swapped = redis.run_all(
        [
            Call(
                REPLACE_LIST,
                (*keys_of(shop_id), rebuild_key(shop_id)),
                (
                    rebuild,
                    _add_jitter(idle_ms),
                    _add_jitter(FRESH_TTL_MS),
                    MAX_LISTS,
                    ",".join(map(str, review_list.review_ids)),
                ),
            )
            for shop_id, review_list in lists.items()
        ]
    )
    return [shop_id for shop_id, code in zip(lists, swapped, strict=True) if code == 1]


def _add_jitter(ttl_ms: int) -> int:
    """Spread the expiry of keys that were set together."""
    return int(ttl_ms * random.uniform(0.9, 1.1))
