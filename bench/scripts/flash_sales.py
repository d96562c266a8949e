"""Flash sales: as many pending orders as allowed, and full calls on one bucket."""

import time

from bench.harness import Harness
from bench.scripts.cases import Case, prepare_nothing
from plaza.commerce.flash_sales import (
    redis_keys,
    redis_load,
    redis_orders,
    redis_sales,
    redis_waitlist,
)
from plaza.commerce.flash_sales.model import MAX_STOCK, OrderRow, SaleGeneration, Terms, Voucher
from plaza.commerce.flash_sales.recover_orders import ORDERS_PER_VOUCHER
from plaza.commerce.flash_sales.redis_keys import buyers_key, recovery_key
from plaza.commerce.flash_sales.redis_orders import MAX_ORDERS_PER_CALL
from plaza.commerce.flash_sales.redis_waitlist import MAX_LEAVING
from plaza.commerce.flash_sales.settings import sale_settings
from plaza.infra.redis import redis

SALE = SaleGeneration(7, 1, 1)  # all buyers share one bucket
_DAY_US = 86_400_000_000
_FIRST = 10**18
_ROOM = 10_000  # orders that may become pending in a case


def _load(voucher_id: int) -> None:
    now_us = time.time_ns() // 1000
    terms = Terms(1, "voucher", 100, MAX_STOCK, now_us - _DAY_US, now_us + _DAY_US)
    sale = SaleGeneration(voucher_id, SALE.generation, MAX_STOCK)
    redis_load.begin_loading(sale, Voucher(voucher_id, terms, MAX_STOCK, SALE.generation, False), 0)


def _begin(harness: Harness) -> None:
    _load(SALE.voucher_id)
    redis_load.open_sale(SALE, drained=True)
    count = harness.scale(sale_settings().max_pending_orders) - _ROOM
    for start in range(0, count, 10_000):
        buyers = range(_FIRST + start, _FIRST + start + 10_000)
        redis.execute("RPUSH", recovery_key(SALE), *(f"{buyer}:{buyer}:1" for buyer in buyers))
    counts = f"{MAX_STOCK - count}:{count}:0:0:0"
    redis.execute("HSET", redis_keys.state_key(SALE.voucher_id), "counts", counts)


def _begin_with_buyers(harness: Harness) -> None:
    _begin(harness)
    buyers = range(_FIRST, _FIRST + _ROOM)
    entries = [part for buyer in buyers for part in (buyer, f"pending:{buyer}")]
    redis.execute("HSET", buyers_key(SALE, _FIRST), *entries)


def _confirm(run: int) -> None:
    first = _FIRST + run * MAX_ORDERS_PER_CALL
    rows = [
        OrderRow(n, SALE.voucher_id, n, None) for n in range(first, first + MAX_ORDERS_PER_CALL)
    ]
    [call] = redis_orders._confirm_calls(rows, {SALE.voucher_id: SALE})
    redis.run(call.script, call.keys, call.args)


def _fail(run: int) -> None:
    row = OrderRow(_FIRST + run, SALE.voucher_id, _FIRST + run, "timed-out")
    [call] = redis_orders._release_calls([row], {SALE.voucher_id: SALE})
    redis.run(call.script, call.keys, call.args)


def _join(run: int) -> None:
    first = _FIRST + run * MAX_ORDERS_PER_CALL
    redis_waitlist.join(SALE, [(n, n) for n in range(first, first + MAX_ORDERS_PER_CALL)])


def _begin_with_waitlist(harness: Harness) -> None:
    _begin(harness)
    for run in range(_ROOM // MAX_ORDERS_PER_CALL):
        _join(run)


def _leave(run: int) -> None:
    first = _FIRST + run * MAX_LEAVING
    redis_waitlist.leave(SALE, range(first, first + MAX_LEAVING))


def _find_overdue(run: int) -> None:
    keys = redis_keys.state_key(SALE.voucher_id), recovery_key(SALE)
    redis.run(redis_orders.OVERDUE, keys, (SALE.generation, _DAY_US, ORDERS_PER_VOUCHER))


CASES = [
    Case("a sale", redis_load.LOAD, prepare_nothing, lambda run: _load(1 + run)),
    Case(
        "a sale that is loaded",
        redis_load.OPEN,
        lambda harness: _load(SALE.voucher_id),
        lambda run: redis_load.open_sale(SALE, drained=True),
    ),
    Case(
        "as many pending as allowed",
        redis_orders.RESERVE,
        _begin,
        lambda run: redis_orders.reserve(SALE, run + 1, run + 1),
    ),
    Case("250 orders of one bucket", redis_orders.CONFIRM, _begin_with_buyers, _confirm),
    Case("250 buyers of one bucket, 100 offers", redis_waitlist.JOIN, _begin, _join),
    Case("500 buyers, 100 offers", redis_waitlist.LEAVE, _begin_with_waitlist, _leave),
    Case("an order", redis_orders.RELEASE, _begin_with_buyers, _fail),
    Case("all of them due", redis_orders.OVERDUE, _begin, _find_overdue),
    Case(
        "all of them due and pending, with overdue",
        redis_orders.RECOVER,
        _begin_with_buyers,
        lambda run: redis_orders.find_overdue([SALE], _DAY_US, ORDERS_PER_VOUCHER),
    ),
    Case(
        "a shop that was deleted",
        redis_sales.WITHDRAW,
        _begin,
        lambda run: redis_sales.withdraw([SALE], withdrawn=run % 2 == 0),
    ),
]
