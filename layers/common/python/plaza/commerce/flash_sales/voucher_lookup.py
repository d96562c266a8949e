"""Look up vouchers without state in Redis, with as few MySQL reads as possible.

{<shard>}:voucher:<id>:absent  hash  version, value: MySQL has no such voucher; kept for 30 s
{<shard>}:shop:<id>:vouchers   hash  version, value: the first page of a shop's vouchers
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import astuple
from types import GenericAlias

from plaza.commerce.flash_sales import mysql_vouchers
from plaza.commerce.flash_sales.model import NotReady, Terms, Voucher, VoucherSummary
from plaza.commerce.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.infra.derived import cache
from plaza.infra.derived.cache import NEVER_STALE, CacheEntry
from plaza.infra.derived.projections import key_of
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.codec import TEXT, Codec, json_codec, row_type, values_of
from plaza.infra.runtime.process import LocalCache

VOUCHERS: Codec[list[Voucher]] = json_codec(
    "vouchers",
    GenericAlias(list, (row_type(Voucher, terms=row_type(Terms)),)),
    lambda rows: [Voucher(r.id, Terms(*values_of(r.terms)), *values_of(r)[2:]) for r in rows],
    lambda vouchers: [(v.id, astuple(v.terms), *v[2:]) for v in vouchers],
)
_EXISTS = 1  # version of "created"; "absent" is stored with version 0

# Limits the reads of one process for vouchers that may not exist: callers can invent ids.
_lookup_budget = TokenBucket(rate_per_s=20, burst=40)
SUMMARY_TTL_S = 60
# Titles of vouchers and names of shops may change, the shop of a voucher never does.
_summaries: LocalCache[int, VoucherSummary] = LocalCache(max_entries=1_000, ttl_s=SUMMARY_TTL_S)


def find_voucher(voucher_id: int) -> Voucher | None:
    """Return a voucher as stored in MySQL, None if it does not exist; as ``find_vouchers``."""
    return find_vouchers([voucher_id])[voucher_id]


def find_vouchers(voucher_ids: Sequence[int]) -> dict[int, Voucher | None]:
    """Return vouchers as stored in MySQL, None for those that do not exist.

    Two round trips if Redis or its filter reports all absent; else also one statement, and one more
    round trip if some are absent. Raises NotReady if the lookup budget is empty; MysqlDown.
    """
    keys = {voucher_id: _absent_key(voucher_id) for voucher_id in voucher_ids}
    candidates = list(keys)
    with suppress(RedisDown):
        marks = zip(keys, cache.read_all(list(keys.values()), TEXT), strict=True)
        candidates = [voucher_id for voucher_id, mark in marks if mark is None]
        candidates = VOUCHER_IDS.find_possible(candidates) if candidates else []
    if candidates and not _lookup_budget.take():
        raise NotReady("Too many vouchers are being looked up; retry after 1 s.", retry_after_s=1)
    vouchers = mysql_vouchers.read_all(candidates) if candidates else {}
    if absent := [voucher_id for voucher_id in candidates if voucher_id not in vouchers]:
        with suppress(RedisDown):
            entries = {keys[voucher_id]: CacheEntry(0, None) for voucher_id in absent}
            cache.store_all(NEVER_STALE, entries, TEXT, create=True)
    return {voucher_id: vouchers.get(voucher_id) for voucher_id in keys}


def find_summaries(voucher_ids: Collection[int]) -> dict[int, VoucherSummary]:
    """Return what orders show of these vouchers, up to a minute old; while MySQL is unavailable
    those that this process has. At most one statement."""
    summaries = _summaries.get_all(voucher_ids)
    if missing := [voucher_id for voucher_id in voucher_ids if voucher_id not in summaries]:
        with suppress(MysqlDown):
            rows = mysql_vouchers.read_summaries(missing)
            _summaries.put_all(rows)
            summaries |= rows
    return summaries


def mark_created(voucher_id: int, shop_id: int) -> None:
    """Delete all records that a new voucher is absent. Three round trips. Raises RedisDown."""
    VOUCHER_IDS.add([voucher_id])  # again: a build that began since may have read past its id
    cache.drop_all({_absent_key(voucher_id): _EXISTS})
    cache.drop_first_pages([list_key(shop_id)])


def list_key(shop_id: int) -> str:
    return key_of(f"shop:{shop_id}", "vouchers")


def _absent_key(voucher_id: int) -> str:
    return key_of(f"voucher:{voucher_id}", "absent")
