"""Look up vouchers without state in Redis, with as few MySQL reads as possible.

{<shard>}:voucher:<id>:absent  hash  version, value: MySQL has no such voucher; kept for 30 s
{<shard>}:shop:<id>:vouchers   hash  version, value: the first page of a shop's vouchers
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import astuple
from types import GenericAlias

from plaza.flash_sales import mysql_vouchers
from plaza.flash_sales.model import NotReady, Terms, Voucher
from plaza.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.infra.derived import cache
from plaza.infra.derived.cache import NEVER_STALE, CacheEntry
from plaza.infra.derived.projections import key_of
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.codec import TEXT, Codec, json_codec, row_type, values_of

VOUCHERS: Codec[list[Voucher]] = json_codec(
    "vouchers",
    GenericAlias(list, (row_type(Voucher, terms=row_type(Terms)),)),
    lambda rows: [Voucher(r.id, Terms(*values_of(r.terms)), *values_of(r)[2:]) for r in rows],
    lambda vouchers: [(v.id, astuple(v.terms), *v[2:]) for v in vouchers],
)
_EXISTS = 1  # version of "created"; "absent" is stored with version 0

# Limits the reads of one process for vouchers that may not exist: callers can invent ids.
_lookup_budget = TokenBucket(rate_per_s=20, burst=40)


def find_voucher(voucher_id: int) -> Voucher | None:
    """Return a voucher as stored in MySQL, None if it does not exist.

    Two round trips if Redis or its filter reports it absent; else also one statement, and one more
    round trip if it is absent. Raises NotReady if the lookup budget is empty; MysqlDown.
    """
    key = _absent_key(voucher_id)
    with suppress(RedisDown):
        if cache.read_all([key], TEXT)[0] is not None:
            return None
        if not VOUCHER_IDS.query(voucher_id).may_exist:
            return None
    if not _lookup_budget.take():
        raise NotReady("Too many vouchers are being looked up; retry after 1 s.", retry_after_s=1)
    voucher = mysql_vouchers.read(voucher_id)
    if voucher is None:
        with suppress(RedisDown):
            cache.store_all(NEVER_STALE, {key: CacheEntry(0, None)}, TEXT, create=True)
    return voucher


def mark_created(voucher_id: int, shop_id: int) -> None:
    """Delete all records that a new voucher is absent. Three round trips. Raises RedisDown."""
    VOUCHER_IDS.add([voucher_id])  # again: a build that began since may have read past its id
    cache.drop_all({_absent_key(voucher_id): _EXISTS})
    cache.drop_first_pages([list_key(shop_id)])


def list_key(shop_id: int) -> str:
    return key_of(f"shop:{shop_id}", "vouchers")


def _absent_key(voucher_id: int) -> str:
    return key_of(f"voucher:{voucher_id}", "absent")
