"""Looking up vouchers that Redis has no sale of: MySQL is asked as rarely as possible.

{<shard>}:voucher:<id>:absent hash  version, value: for half a minute, that MySQL has no such voucher
{<shard>}:shop:<id>:vouchers  hash  version, value: the first page of what a shop offers
"""

from __future__ import annotations

from contextlib import suppress

from plaza.flash_sales import mysql_vouchers
from plaza.flash_sales.model import NotReady, Voucher
from plaza.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.infra import cache
from plaza.infra.cache import NEVER_STALE, CacheEntry
from plaza.infra.projections import key_of
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket

_EXISTS = 1  # the version of "there is one": what says there is none is older

# How often one process may read a voucher that may not exist: ids can be made up.
_lookup_budget = TokenBucket(rate_per_s=20, burst=40)


def find_voucher(voucher_id: int) -> Voucher | None:
    """Returns a voucher as MySQL has it, None when there is none.

    Two round trips when Redis remembers or its filter says that there is none; else a statement
    and another round trip. Raises NotReady when the budget is used up; MysqlDown.
    """
    key = _absent_key(voucher_id)
    with suppress(RedisDown):
        if cache.read_all([key])[0] is not None:
            return None
        if not VOUCHER_IDS.query(voucher_id).may_exist:
            return None
    if not _lookup_budget.take():
        raise NotReady("Too many vouchers are being looked up", retry_after_s=1)
    voucher = mysql_vouchers.read(voucher_id)
    if voucher is None:
        with suppress(RedisDown):
            cache.store_all(NEVER_STALE, {key: CacheEntry(0, None)}, create=True)
    return voucher


def mark_created(voucher_id: int, shop_id: int) -> None:
    """A voucher was made: nothing says any more that there is none. Three round trips.

    Raises RedisDown.
    """
    VOUCHER_IDS.add([voucher_id])  # a build may have begun, and read past it, before it was made
    cache.drop_all({_absent_key(voucher_id): _EXISTS})
    cache.drop_first_pages([list_key(shop_id)])


def list_key(shop_id: int) -> str:
    """Returns the key of the first page of what a shop offers."""
    return key_of(f"shop:{shop_id}", "vouchers")


def _absent_key(voucher_id: int) -> str:
    return key_of(f"voucher:{voucher_id}", "absent")
