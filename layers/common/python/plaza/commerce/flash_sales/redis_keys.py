"""Keys of sales in Redis.

All keys of a voucher have the hash tag of its shard. Under ``{<shard>}:voucher:<id>``:

    :sale      hash    the state: generation; phase: loading, draining, live, withdrawn or
                       finalized; counts: <stock>:<pending>:<offered>:<waiting>:<full_us>; sold;
                       initial_stock = stock + pending + sold + offered, at every instant;
                       cancelled, waiting: the sizes of the set and of the waitlist;
                       opens_us, closes_us; drain_until_us, the end of the drain;
                       cursor: what is loaded, as in open.lua;
                       term: under which the waitlist was read from MySQL (``infra.redis.terms``);
                       under another one the node may lack buyers and orders, and offers no unit
                       until they are read again; full_us: when the token bucket of orders is full
                       again
    :lease     string  held by the process that loads the state
    :<generation>:buyers:<bucket>  hash  buyer -> status:order; the pending entries are exactly
                                         the pending orders
    :<generation>:recovery         list  order:buyer:second, when it was reserved or last recovered;
                                         all pending orders, and decided ones of the last minutes;
                                         removed when no order is pending
    :<generation>:cancelled        set   order:buyer, the orders that were cancelled, so that no
                                         late message confirms them
    :<generation>:waitlist         zset  buyer -> seq, the order of offers
    :<generation>:offers           zset  buyer -> when the offer ends; exactly the offered units

Per buyer, in the buyer's shard, ``{<shard>}:user:<id>:orders``: zset, order:voucher -> the second
in the order's id. A pointer is written after the order has its second copy, on the queue or in
MySQL, and before its id is returned: an order with a pointer is decided whatever Redis loses.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

from plaza.commerce.flash_sales.model import SaleGeneration
from plaza.infra.redis.shards import shard_of


def state_key(voucher_id: int) -> str:
    return f"{_base(voucher_id)}:sale"


def lease_key(voucher_id: int) -> str:
    return f"{_base(voucher_id)}:lease"


def recovery_key(sale: SaleGeneration) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:recovery"


def cancelled_key(sale: SaleGeneration) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:cancelled"


def waitlist_key(sale: SaleGeneration) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:waitlist"


def offers_key(sale: SaleGeneration) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:offers"


def buyers_key(sale: SaleGeneration, buyer_id: int) -> str:
    return bucket_key(sale, crc32(b"%d" % buyer_id) % sale.buckets)


def bucket_key(sale: SaleGeneration, bucket: int) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:buyers:{bucket}"


def reserve_keys(sale: SaleGeneration, buyer_id: int) -> tuple[str, str, str, str]:
    """Return the keys of reserve.lua."""
    state, buyers = state_key(sale.voucher_id), buyers_key(sale, buyer_id)
    return state, buyers, recovery_key(sale), offers_key(sale)


def pointers_key(buyer_id: int) -> str:
    return f"{{{shard_of(f'user:{buyer_id}')}}}:user:{buyer_id}:orders"


def order_keys(sale: SaleGeneration, buyer_id: int) -> tuple[str, ...]:
    return (state_key(sale.voucher_id), buyers_key(sale, buyer_id), *other_keys(sale))


def other_keys(sale: SaleGeneration) -> list[str]:
    return [recovery_key(sale), cancelled_key(sale), waitlist_key(sale), offers_key(sale)]


def recovery_keys(sale: SaleGeneration) -> tuple[str, str]:
    return state_key(sale.voucher_id), recovery_key(sale)


@lru_cache(maxsize=1024)
def _base(voucher_id: int) -> str:
    name = f"voucher:{voucher_id}"
    return f"{{{shard_of(name)}}}:{name}"
